/** What of the stream is shown. */

import type { Notification } from '../hub/types';

export interface Filter {
  text: string;
  agent: string;
  type: string;
  task: string;
  session: string;
  /** The first part of event names: memory, conflict, agent. */
  kind: string;
}

export function matcher(filter: Filter): (one: Notification) => boolean {
  const wanted = filter.text.trim().toLowerCase();
  return (one) => {
    const it = one.memory_unit;
    if (filter.kind && !one.event.startsWith(`${filter.kind}.`)) return false;
    if (filter.agent && one.agent_id !== filter.agent) return false;
    if (filter.type && it?.type !== filter.type) return false;
    if (filter.task && one.task_id !== filter.task) return false;
    if (filter.session && it?.source.session_id !== filter.session) return false;
    if (!wanted) return true;
    const texts = [one.summary, one.agent_id, one.memory_unit_id, one.conflict_id, one.task_id, it?.content, it?.intent.purpose];
    return texts.some((text) => text?.toLowerCase().includes(wanted));
  };
}
