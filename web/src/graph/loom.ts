/**
 * Where each unit stands in the graph. Each agent is a thread that runs from left to right; each unit is a knot in its
 * author's thread, to the right of everything that it names and of what its author recorded before: what was known is
 * left of what came of it. The same units always stand at the same places, so nothing jumps and nothing has to settle.
 */

import type { RelationType } from '../hub/types';

export interface Knot {
  id: string;
  agent: string;
  epoch: number;
  relations: readonly { type: RelationType; target_id: string }[];
}

export interface Placed {
  id: string;
  column: number;
  lane: number;
}

export interface Woven {
  placed: Placed[];
  /** Agents by their lanes, from the top. */
  lanes: string[];
  edges: { id: string; source: string; target: string; type: RelationType }[];
  columns: number;
}

export function weave(knots: readonly Knot[]): Woven {
  // By epoch, then by id, so that units of one operation keep an order too.
  const ordered = [...knots].sort((a, b) => a.epoch - b.epoch || a.id.localeCompare(b.id, 'en', { numeric: true }));
  const lanes: string[] = [];
  const laneOf = new Map<string, number>();
  for (const { agent } of ordered) {
    if (laneOf.has(agent)) continue;
    laneOf.set(agent, lanes.length);
    lanes.push(agent);
  }
  const columnOf = new Map<string, number>();
  const lastOfLane = new Map<number, number>();
  const placed: Placed[] = [];
  const edges: Woven['edges'] = [];
  const known = new Set(ordered.map((knot) => knot.id));
  let columns = 0;
  for (const knot of ordered) {
    const lane = laneOf.get(knot.agent) ?? 0;
    let column = (lastOfLane.get(lane) ?? -1) + 1;
    for (const { target_id } of knot.relations) {
      const target = columnOf.get(target_id);
      if (target !== undefined) column = Math.max(column, target + 1);
    }
    columnOf.set(knot.id, column);
    lastOfLane.set(lane, column);
    columns = Math.max(columns, column + 1);
    placed.push({ id: knot.id, column, lane });
    knot.relations.forEach(({ type, target_id }, at) => {
      if (known.has(target_id) && target_id !== knot.id) edges.push({ id: `${knot.id}>${target_id}#${at}`, source: knot.id, target: target_id, type });
    });
  }
  return { placed, lanes, edges, columns };
}

/** The first and the last unit in the order of the columns. */
export function ends({ placed }: Woven): [string | null, string | null] {
  let [first, last]: [Placed | null, Placed | null] = [null, null];
  for (const one of placed) {
    if (!first || one.column < first.column) first = one;
    if (!last || one.column >= last.column) last = one;
  }
  return [first?.id ?? null, last?.id ?? null];
}

/** The unit next to another in a direction: along its thread, or the nearest on the thread above or below. */
export function step(woven: Woven, from: string, direction: 'left' | 'right' | 'up' | 'down'): string | null {
  const here = woven.placed.find((one) => one.id === from);
  if (!here) return woven.placed[0]?.id ?? null;
  let best: Placed | null = null;
  let least = Infinity;
  for (const one of woven.placed) {
    const across = one.lane - here.lane;
    const along = one.column - here.column;
    const fits =
      direction === 'left' ? along < 0 : direction === 'right' ? along > 0 : direction === 'up' ? across < 0 : across > 0;
    if (!fits) continue;
    const isAlong = direction === 'left' || direction === 'right';
    const distance = isAlong ? Math.abs(along) + Math.abs(across) * 4 : Math.abs(across) * 8 + Math.abs(along);
    if (distance < least) {
      least = distance;
      best = one;
    }
  }
  return best?.id ?? null;
}
