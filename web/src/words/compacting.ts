/** COMPACT in words: what is asked for, what would come of it, what came, and the hub's no. */

import { inWords, Refused } from '../hub/http';
import type { MemoryType, UnitStatus } from '../hub/types';
import { bytes, counted } from './figures';
import { STATUS_WORDS, TYPE_WORDS } from './names';
import { shown } from './text';

export type Strategy = 'archive' | 'summarize' | 'purge';

/** What the form says. */
export interface Wish {
  strategy: Strategy;
  age: string;
  type: '' | MemoryType;
  status: '' | UnitStatus;
  session: string;
  reason: string;
}

/** COMPACT's answer. */
export interface Compacted {
  units_affected: number;
  synthesis_units_created: number;
  storage_reclaimed_bytes: number | null;
  warning?: { message: string };
}

/** As the operation wants it. A purge without a condition is one of every unit, which the hub wants to be told so. */
export function payloadOf(wish: Wish): Record<string, unknown> {
  const filter: Record<string, unknown> = {};
  if (wish.age !== '') filter.max_age_epochs = Number(wish.age);
  if (wish.type) filter.types = [wish.type];
  if (wish.status) filter.status = [wish.status];
  if (wish.session.trim()) filter.session_id = wish.session.trim();
  const purge = wish.strategy === 'purge';
  if (purge && Object.keys(filter).length === 0) filter.max_age_epochs = 0;
  return { strategy: wish.strategy, filter, ...(wish.reason.trim() ? { reason: wish.reason.trim() } : {}), ...(purge ? { confirm: true } : {}) };
}

/** Which units are meant, in words. */
export function meant(wish: Wish): string {
  const said = [
    wish.status && `with the status ${STATUS_WORDS[wish.status].toLowerCase()}`,
    wish.type && `of the type ${TYPE_WORDS[wish.type].toLowerCase()}`,
    wish.session.trim() && `of the session ${shown(wish.session.trim())}`,
    wish.age !== '' && Number(wish.age) > 0 && `older than ${counted(Number(wish.age), 'epoch', 'epochs')}`,
  ].filter(Boolean);
  return said.length > 0 ? said.join(', ') : 'all that there are';
}

/** What each strategy is called, and what it means for the units. */
export const WORDS: Record<Strategy, { verb: string; done: string; means: string }> = {
  archive: { verb: 'Archive', done: 'archived', means: 'Archived units are brought to nobody who does not ask for them. They stay in lists and replays.' },
  summarize: { verb: 'Summarize', done: 'archived behind', means: 'The hub writes syntheses of them and archives the originals.' },
  purge: { verb: 'Purge', done: 'purged', means: 'Purged units leave memory for good, and nothing brings them back. The log keeps what was said, and a tombstone for each.' },
};

/** The syntheses of an answer, counted. */
export const syntheses = (it: Compacted): string => counted(it.synthesis_units_created, 'synthesis', 'syntheses');

/** What was done, in a sentence. */
export function outcome(strategy: Strategy, it: Compacted): string {
  const units = counted(it.units_affected, 'unit', 'units');
  if (strategy === 'summarize') return `${units} archived behind ${syntheses(it)}.${it.warning ? ` ${it.warning.message}` : ''}`;
  const freed = it.storage_reclaimed_bytes ? `, ${bytes(it.storage_reclaimed_bytes)} of memory given back` : '';
  return `${units} ${WORDS[strategy].done}${freed}.`;
}

/** The hub's no, in the words of this form. */
export function refusedWords(error: unknown): string {
  if (!(error instanceof Refused)) return inWords(error);
  switch (error.code) {
    case 'UNSUPPORTED_OPERATION': return 'This Field does not do that at its level. Nothing was changed.';
    case 'OVERLOADED': return 'The hub is busy with another one. Nothing was changed; try again in a moment.';
    case 'INVALID_MESSAGE':
      return /session/.test(error.message) ? 'The session is not a name that a session can have. Nothing was changed.'
        : /age/.test(error.message) ? 'The age has to be a whole number of epochs, or nothing. Nothing was changed.'
        : /reason/.test(error.message) ? 'The reason is too long. Nothing was changed.'
        : `The hub did not take it: ${error.message} Nothing was changed.`;
    default: return error.message;
  }
}
