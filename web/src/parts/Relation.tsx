/** A relation as it is drawn: colour, stroke, word. */

import type { JSX } from 'preact';
import type { RelationType } from '../hub/types';
import { dark } from '../theme';
import { RELATIONS } from '../words/names';

export function RelationMark({ type, inward = false }: { type: RelationType; inward?: boolean }): JSX.Element {
  const look = RELATIONS[type];
  if (!look) return <span class="tie-kind">{type}</span>;
  const dash = look.line === 'dotted' ? '1.500 3.500' : look.line === 'dashed' ? (look.dash ?? [6, 4]).join(' ') : undefined;
  return (
    <span class="tie-kind">
      <svg width="26" height="8" viewBox="0 0 26 8" aria-hidden="true">
        <path d="M1 4h24" stroke={dark.value ? look.dark : look.light} stroke-width="2" stroke-dasharray={dash} stroke-linecap={look.line === 'dotted' ? 'round' : 'butt'} />
      </svg>
      {inward ? look.in : look.out}
    </span>
  );
}
