/**
 * A timeline as a person walks it. What one COMPACT did to many units is one step of it; and at each step the units stand
 * as they stood then, so that an animation has colours of its time and not those of its end.
 */

import type { ReplayEvent, Unit, UnitStatus } from '../hub/types';

export interface Step {
  event: ReplayEvent;
  /** What it says of the step; the event's own words where the step is one event. */
  words: string;
  /** Units that it touched, where they are several. */
  units: string[];
}

const PUT_AWAY: Record<string, string> = { ARCHIVE: 'archived', PURGE: 'purged' };

export function stepsOf(timeline: readonly ReplayEvent[]): Step[] {
  const steps: Step[] = [];
  for (let at = 0; at < timeline.length; at += 1) {
    const event = timeline[at] as ReplayEvent;
    const word = PUT_AWAY[event.event_type];
    let end = at + 1;
    if (word) while (timeline[end]?.event_type === event.event_type && timeline[end]?.epoch === event.epoch) end += 1;
    if (!word || end - at < 2) {
      steps.push({ event, words: event.description, units: [] });
      continue;
    }
    const why = event.description.indexOf(': ');
    const words = `${end - at} units ${word} by COMPACT${why < 0 ? '' : event.description.slice(why)}`;
    const units = timeline.slice(at, end).flatMap((one) => one.memory_unit_id ?? []);
    steps.push({ event: { ...event, memory_unit_id: null }, words, units });
    at = end - 1;
  }
  return steps;
}

/** How a unit stood at a time. */
export interface Standing {
  status: UnitStatus;
  archived: boolean;
}

/** The units that were there after a step, as they stood. At the last step they stand as they do now. */
export function standingAt(steps: readonly Step[], at: number, units: readonly Unit[]): Map<string, Standing> {
  const known = new Map(units.map((it) => [it.id, it]));
  const standing = new Map<string, Standing>();
  const set = (id: string, change: Partial<Standing>): void => {
    const was = standing.get(id);
    if (was) standing.set(id, { ...was, ...change });
  };
  /** Those on the other side of a contradiction with a unit. */
  const rivals = new Map<string, Set<string>>();
  const rival = (a: string, b: string): void => {
    rivals.set(a, (rivals.get(a) ?? new Set()).add(b));
    rivals.set(b, (rivals.get(b) ?? new Set()).add(a));
  };
  const enter = (id: string): void => {
    if (standing.has(id)) return;
    standing.set(id, { status: 'active', archived: false });
    for (const { type, target_id } of known.get(id)?.relations ?? []) {
      if (type === 'supersedes') set(target_id, { status: 'superseded' });
      if (type !== 'contradicts') continue;
      rival(id, target_id);
      if (standing.get(target_id)?.status !== 'active') continue;
      set(id, { status: 'contested' });
      set(target_id, { status: 'contested' });
    }
  };
  for (const { event, units: several } of steps.slice(0, at + 1)) {
    const one = event.memory_unit_id;
    if (one) enter(one);
    switch (event.event_type) {
      case 'MERGE':
        if (!one) break;
        set(one, { status: 'active' });
        for (const loser of rivals.get(one) ?? []) if (standing.get(loser)?.status === 'contested') set(loser, { status: 'superseded' });
        break;
      case 'RETRACT': if (one) set(one, { status: 'retracted' }); break;
      case 'ARCHIVE':
        for (const id of one ? [one] : several) set(id, { archived: true });
        break;
      default:
    }
  }
  if (at >= steps.length - 1) {
    for (const id of standing.keys()) {
      const it = known.get(id);
      if (it) standing.set(id, { status: it.status, archived: it.archived ?? standing.get(id)?.archived ?? false });
    }
  }
  return standing;
}
