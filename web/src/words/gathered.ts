/** What one operation did to many units, as one row of the stream. */

import type { Notification } from '../hub/types';
import { counted } from './figures';

export interface Told {
  /** The oldest one, so that a row stays the same while it grows. */
  event: Notification;
  /** How many there are of it. */
  many: number;
}

/** From the newest to the oldest, as they are given. */
export function gathered(listed: readonly Notification[]): Told[] {
  const rows: Told[] = [];
  for (const event of listed) {
    const before = rows.at(-1);
    if (before && event.event === 'memory.archived' && before.event.event === event.event && before.event.epoch === event.epoch) {
      before.event = event;
      before.many += 1;
    } else rows.push({ event, many: 1 });
  }
  return rows;
}

/** What such a row says. */
export function sentence({ event, many }: Told): string {
  if (many === 1) return event.summary;
  const why = event.summary.indexOf(': ');
  return `${counted(many, 'unit was', 'units were')} archived${why < 0 ? '' : event.summary.slice(why)}`;
}
