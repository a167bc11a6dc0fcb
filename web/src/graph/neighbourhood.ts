/** The units around one: what it names and what names it, step by step, up to a bound. */

import { fetchUnit } from '../hub/field';
import type { UnitInFull } from '../hub/types';

export const AROUND_MAX = 90;
const STEPS = 3;
const AT_ONCE = 5;

export interface Neighbourhood {
  units: UnitInFull[];
  /** Whether there is more than was taken. */
  cut: boolean;
}

export async function neighbourhood(
  center: string,
  signal: AbortSignal,
  fetch: (id: string) => Promise<UnitInFull> = fetchUnit,
): Promise<Neighbourhood> {
  const found = new Map<string, UnitInFull>();
  let next = [center];
  let cut = false;
  for (let steps = 0; steps <= STEPS && next.length > 0 && !signal.aborted; steps += 1) {
    const room = AROUND_MAX - found.size;
    if (next.length > room) cut = true;
    const now = next.slice(0, room);
    const reached: UnitInFull[] = [];
    for (let at = 0; at < now.length; at += AT_ONCE) {
      const answers = await Promise.allSettled(now.slice(at, at + AT_ONCE).map(fetch));
      for (const answer of answers) if (answer.status === 'fulfilled') reached.push(answer.value);
      if (signal.aborted) break;
    }
    // The center itself has to be there; of the others, what is not (a purged one) is left out.
    if (steps === 0 && reached.length === 0) return fetch(center).then((one) => ({ units: [one], cut: false }));
    for (const one of reached) found.set(one.id, one);
    const names = reached.flatMap((one) => [
      ...one.relations.map((relation) => relation.target_id),
      ...one.inbound_relations.map((relation) => relation.source_id),
    ]);
    next = [...new Set(names)].filter((id) => !found.has(id));
    if (steps === STEPS && next.length > 0) cut = true;
  }
  return { units: [...found.values()], cut };
}
