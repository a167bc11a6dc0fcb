/** Units as a list shows them, and which of them a list wants. */

import type { MemoryType, Unit, UnitStatus } from './types';

/** A row keeps what it shows, so that a hundred thousand of them are small. */
export interface Row {
  id: string;
  type: MemoryType;
  status: UnitStatus;
  archived: boolean;
  text: string;
  agent: string;
  epoch: number;
  timestamp: string;
  score: number | null;
  why: string | null;
  relevance: number | null;
}

export function rowOf(it: Unit): Row {
  return {
    id: it.id, type: it.type, status: it.status, archived: it.archived ?? false, text: it.content.slice(0, 280),
    agent: it.source.agent_id, epoch: it.epoch, timestamp: it.source.timestamp,
    score: it.confidence?.score ?? null, why: null, relevance: null,
  };
}

export interface Wanted {
  type: string;
  status: string;
  agent: string;
  task: string;
  session: string;
}

export function wants(wanted: Wanted, it: Unit): boolean {
  return (
    (!wanted.type || it.type === wanted.type) &&
    (wanted.status === 'archived' ? it.archived === true : wanted.status ? it.status === wanted.status : it.status !== 'draft') &&
    (!wanted.agent || it.source.agent_id === wanted.agent) &&
    (!wanted.task || it.intent.task_id === wanted.task) &&
    (!wanted.session || it.source.session_id === wanted.session)
  );
}

/** A list by status, after some units changed theirs: who does not belong any more is gone, who does now is at its place. */
export function regrouped(rows: Row[], changed: ReadonlyMap<string, Unit>, wanted: Wanted): Row[] {
  const kept = rows.filter((row) => {
    const it = changed.get(row.id);
    return !it || wants(wanted, it);
  });
  const known = new Set(kept.map((row) => row.id));
  // Beyond what is loaded they come with their page.
  const last = kept.at(-1)?.epoch ?? 0;
  const entered = [...changed.values()].filter((it) => !known.has(it.id) && wants(wanted, it) && it.epoch >= last).map(rowOf);
  return entered.length > 0 ? [...kept, ...entered].sort((a, b) => b.epoch - a.epoch) : kept;
}
