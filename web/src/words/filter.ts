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

/** The filter with what its text names: `task:…`, `session:…`, `agent:…`, `type:…`; the other words are text. */
export function spelled(filter: Filter): Filter {
  const named = { ...filter };
  named.text = filter.text.replace(/(?:^|\s)(task|session|agent|type):(\S+)/g, (_, key: 'task' | 'session' | 'agent' | 'type', value: string) => {
    named[key] = value;
    return ' ';
  });
  return named;
}

export function matcher(asked: Filter): (one: Notification) => boolean {
  const filter = spelled(asked);
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
