/** Signs, drawn here: each type of unit has a shape of its own. */

import type { JSX } from 'preact';
import type { MemoryType } from '../hub/types';
import { TYPE_WORDS } from '../words/names';

const NAV: Record<string, JSX.Element> = {
  live: <path d="M2.5 9h3l2-5 3 10 2.2-5h2.8" />,
  memory: <g><circle cx="5" cy="5" r="2" /><circle cx="13" cy="9" r="2" /><circle cx="5.5" cy="13.5" r="2" /><path d="M6.8 5.9l4.4 2.2M11.3 10.1l-4 2.5" /></g>,
  conflicts: <path d="M3 5h5l-2-2.2M6 7.2L8 5M15 13h-5l2 2.2M12 10.8L10 13M9 2v14" />,
  agents: <g><circle cx="9" cy="6.2" r="2.7" /><path d="M3.5 15c.6-3 2.8-4.4 5.5-4.4s4.900 1.400 5.500 4.400" /></g>,
  replay: <path d="M3.500 9a5.500 5.500 0 1 0 1.800-4.100M3.200 2.800v3h3M9 6v3.200l2.200 1.400" />,
  field: <path d="M3 15V9M7 15V4M11 15v-4M15 15V6.500" />,
  search: <g><circle cx="8" cy="8" r="4.500" /><path d="M11.500 11.500L15 15" /></g>,
  close: <path d="M4.500 4.500l9 9M13.500 4.500l-9 9" />,
  pause: <path d="M6.500 4v10M11.500 4v10" />,
  play: <path d="M6 3.800v10.400l8-5.200z" />,
  sun: <g><circle cx="9" cy="9" r="3" /><path d="M9 1.800v1.700M9 14.500v1.700M1.800 9h1.700M14.500 9h1.700M3.900 3.900l1.200 1.200M12.900 12.900l1.200 1.200M14.100 3.900l-1.200 1.200M5.100 12.900l-1.200 1.200" /></g>,
  moon: <path d="M14.500 10.800A6 6 0 0 1 7.200 3.500 6 6 0 1 0 14.500 10.800z" />,
  system: <g><rect x="2.500" y="3.500" width="13" height="9" rx="1.500" /><path d="M7 15.500h4" /></g>,
  plus: <path d="M9 3.500v11M3.500 9h11" />,
  minus: <path d="M3.500 9h11" />,
  copy: <g><rect x="6" y="6" width="8.500" height="8.500" rx="1.500" /><path d="M11.500 3.500H5A1.500 1.500 0 0 0 3.500 5v6.500" /></g>,
  back: <path d="M10.500 4L5.500 9l5 5" />,
  next: <path d="M7.500 4l5 5-5 5" />,
  help: <g><circle cx="9" cy="9" r="6.500" /><path d="M7.200 7.200c.2-1 .9-1.600 1.900-1.600 1.100 0 1.900.7 1.900 1.700 0 1.500-2 1.500-2 2.900M9 12.600v.1" /></g>,
  graph: <g><path d="M2.500 5h13M2.500 13h13" opacity=".5" /><circle cx="5.500" cy="5" r="1.800" /><circle cx="12" cy="13" r="1.800" /><path d="M6.700 6.400l4.200 5.200" /></g>,
  list: <path d="M3 5h12M3 9h12M3 13h12" />,
  fit: <path d="M3 6.500V3h3.500M11.500 3H15v3.500M15 11.500V15h-3.500M6.500 15H3v-3.500" />,
};

export function Icon({ name, size = 18 }: { name: string; size?: number }): JSX.Element {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 18 18" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      {NAV[name]}
    </svg>
  );
}

const GLYPHS: Record<MemoryType, JSX.Element> = {
  finding: <circle cx="8" cy="8" r="4.600" fill="currentColor" />,
  observation: <circle cx="8" cy="8" r="4.400" />,
  decision: <path d="M8 2.400L13.600 8 8 13.600 2.400 8z" fill="currentColor" />,
  intention: <path d="M4 3.200v9.600L13 8z" />,
  assumption: <circle cx="8" cy="8" r="4.600" stroke-dasharray="2 2.200" />,
  constraint: <rect x="3.400" y="3.400" width="9.200" height="9.200" rx="1" />,
  question: <path d="M5 5.400C5.300 3.800 6.400 3 8 3c1.800 0 3 1 3 2.600C11 8 8 7.900 8 10.200M8 13v.1" />,
  contradiction: <path d="M3.200 3.200l9.600 9.600M12.800 3.200l-9.600 9.600" />,
  synthesis: <path d="M3 3.500L8 8l5-4.500M8 8v5.500" />,
  correction: <path d="M3 8.800l3.400 3.600L13 4.400" />,
  human_directive: <path d="M8 2.400l1.700 3.700 4 .4-3 2.700.9 4L8 11.100l-3.600 2.100.9-4-3-2.700 4-.4z" fill="currentColor" />,
};

/** A type's sign with its name. */
export function TypeMark({ type, word = true }: { type: MemoryType; word?: boolean }): JSX.Element {
  const name = TYPE_WORDS[type] ?? type;
  return (
    <span class={`type type-${type}`} title={word ? undefined : name}>
      <svg width="13" height="13" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.700" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
        {GLYPHS[type] ?? GLYPHS.observation}
      </svg>
      {word ? name : <span class="unseen">{name}</span>}
    </span>
  );
}
