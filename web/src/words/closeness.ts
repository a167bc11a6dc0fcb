/**
 * What a person who searches wants first: what is said in these words, or means the same. An agent's context also counts
 * what stands next to that, and lifts a unit about backups because it blocks the decision that is sought; a search does not.
 */

import type { Scored } from '../hub/types';

export interface Close {
  hit: Scored;
  /** 0 to 1; null where the hub did not tell the factors. */
  closeness: number | null;
}

/** Closest first, by words and meaning alone. Without factors the hub's own order stands. */
export function byCloseness(hits: readonly Scored[]): Close[] {
  const factor = ({ factors }: Scored, name: string): { value: number; contribution: number } => factors?.[name] ?? { value: 0, contribution: 0 };
  // How much more a shared word counts than a like meaning: the same in every row of one answer, told where both are there.
  const both = hits.find((hit) => factor(hit, 'lexical').contribution > 0 && factor(hit, 'semantic').contribution > 0);
  const worth = (hit: Scored, name: string): number => factor(hit, name).contribution / factor(hit, name).value;
  const trust = both ? worth(both, 'lexical') / worth(both, 'semantic') : 1;
  const measured = hits.map((hit): Close => {
    if (!hit.factors) return { hit, closeness: null };
    const own = factor(hit, 'lexical').value * trust + factor(hit, 'semantic').value;
    return { hit, closeness: own / (1 + own) };
  });
  // A stable sort: what is equally close stays in the hub's order.
  return measured.sort((a, b) => (b.closeness ?? 0) - (a.closeness ?? 0));
}
