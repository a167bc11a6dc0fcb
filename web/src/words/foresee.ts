/** What a strategy would come to, where the two sides alone say it. The hub decides; this tells beforehand. */

import type { Conflict, UnitInFull } from '../hub/types';

export function foresee(strategy: string, conflict: Conflict, a: UnitInFull, b: UnitInFull): string | null {
  const prevails = (left: number, right: number, tie: string): string =>
    left === right ? tie : `${left > right ? a.id : b.id} would prevail.`;
  switch (strategy) {
    case 'last_write_wins':
      return `${b.epoch > a.epoch ? b.id : a.id} would prevail: it was committed later.`;
    case 'confidence_weighted': {
      const [left, right] = [a.confidence?.score, b.confidence?.score];
      if (left === undefined || right === undefined) return 'A score is missing: it would be escalated.';
      return prevails(left, right, 'Both are equally sure: it would be escalated.');
    }
    case 'evidence_count': {
      const support = (it: UnitInFull): number => it.inbound_relations.filter((one) => one.type === 'supports').length;
      const evidence = (it: UnitInFull): number => it.confidence?.evidence?.length ?? 0;
      // Whether the supporting units still live is the hub's to know; without any, evidence alone decides.
      if (support(a) + support(b) > 0) return null;
      return prevails(evidence(a), evidence(b), 'Equally supported: it would be escalated.');
    }
    case 'human_escalation':
      return conflict.status === 'escalated' ? 'You choose the side.' : 'Leave it to a person, or to yourself after thinking.';
    default:
      return null;
  }
}
