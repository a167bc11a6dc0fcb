/** What happened, in order, as REPLAY tells it. */

import type { JSX } from 'preact';
import type { ReplayEvent } from '../hub/types';
import { AgentLink, Epoch, UnitLink } from './bits';
import { shown } from '../words/text';

export function knotOf(event: ReplayEvent): string {
  if (/CONFLICT|VOTE|RETRACT|PURGE/.test(event.event_type)) return 'knot knot-clash';
  if (event.event_type === 'MERGE' || event.event_type === 'COMMIT') return 'knot knot-good';
  return 'knot';
}

export function Timeline({ events, label }: { events: readonly ReplayEvent[]; label: string }): JSX.Element {
  return (
    <ol class="chain" aria-label={label}>
      {events.map((event, at) => (
        <li key={`${event.epoch}-${at}`}>
          <span class={knotOf(event)} aria-hidden="true" />
          <div>
            <div class="chain-what"><bdi dir="auto">{shown(event.description)}</bdi></div>
            <div class="chain-meta">
              <Epoch epoch={event.epoch} timestamp={event.timestamp} />
              <AgentLink id={event.agent_id} mark={false} />
              {event.memory_unit_id && <UnitLink id={event.memory_unit_id} />}
            </div>
          </div>
        </li>
      ))}
    </ol>
  );
}
