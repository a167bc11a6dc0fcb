/** Names of the protocol as people read them, and how each is told apart at a glance. */

import type { MemoryType, RelationType, UnitStatus } from '../hub/types';

export const TYPE_WORDS: Record<MemoryType, string> = {
  finding: 'Finding',
  decision: 'Decision',
  observation: 'Observation',
  intention: 'Intention',
  assumption: 'Assumption',
  constraint: 'Constraint',
  question: 'Question',
  contradiction: 'Contradiction',
  synthesis: 'Synthesis',
  correction: 'Correction',
  human_directive: 'Directive',
};

export interface RelationLook {
  out: string;
  in: string;
  light: string;
  dark: string;
  line: 'solid' | 'dashed' | 'dotted';
  /** Lengths of strokes and gaps of a dashed line, pixels. */
  dash?: [number, number];
  arrow: 'triangle' | 'vee' | 'tee' | 'circle' | 'diamond' | 'chevron' | 'triangle-backcurve' | 'square' | 'none';
}

/** Nine relations, each by its colour, its stroke and its word: no one of the three alone has to tell them apart. */
export const RELATIONS: Record<RelationType, RelationLook> = {
  supports: { out: 'supports', in: 'supported by', light: '#1d7a53', dark: '#5fcf9f', line: 'solid', arrow: 'triangle' },
  contradicts: { out: 'contradicts', in: 'contradicted by', light: '#c2381f', dark: '#ff8167', line: 'dashed', dash: [9, 4], arrow: 'tee' },
  supersedes: { out: 'supersedes', in: 'superseded by', light: '#3b4fc4', dark: '#98a6ff', line: 'solid', arrow: 'vee' },
  depends_on: { out: 'depends on', in: 'needed by', light: '#8f5a00', dark: '#e8b45a', line: 'dotted', arrow: 'diamond' },
  caused_by: { out: 'caused by', in: 'caused', light: '#8a3f7c', dark: '#e79bd8', line: 'dashed', dash: [3, 4], arrow: 'chevron' },
  elaborates: { out: 'elaborates', in: 'elaborated by', light: '#5d6273', dark: '#a9abbd', line: 'solid', arrow: 'circle' },
  answers: { out: 'answers', in: 'answered by', light: '#0f7480', dark: '#5cc7d6', line: 'dashed', dash: [12, 3], arrow: 'triangle-backcurve' },
  blocks: { out: 'blocks', in: 'blocked by', light: '#7a2e2e', dark: '#d99a8f', line: 'dashed', dash: [2, 2], arrow: 'square' },
  informs: { out: 'informs', in: 'informed by', light: '#466a1f', dark: '#a9cf73', line: 'dotted', arrow: 'triangle' },
};

export const STATUS_WORDS: Record<UnitStatus, string> = {
  active: 'Active',
  contested: 'Contested',
  superseded: 'Superseded',
  retracted: 'Retracted',
  pending_enrichment: 'Pending',
  draft: 'Draft',
};

const EVENT_WORDS: Record<string, string> = {
  'memory.recorded': 'recorded',
  'memory.superseded': 'superseded',
  'memory.contested': 'contested',
  'memory.retracted': 'retracted',
  'memory.archived': 'archived',
  'conflict.detected': 'conflict',
  'conflict.escalated': 'escalated',
  'conflict.resolved': 'resolved',
  'agent.joined': 'joined',
  'agent.left': 'left',
  'agent.failed': 'lost',
};

export function eventWord(event: string): string {
  return EVENT_WORDS[event] ?? event.replace(/^[a-z]+\./, '').replaceAll('_', ' ');
}

/** How much an event asks to be looked at. */
export function weightOf(event: string): 'clash' | 'good' | 'quiet' | 'plain' {
  if (event === 'conflict.detected' || event === 'conflict.escalated' || event === 'memory.contested') return 'clash';
  if (event === 'conflict.resolved') return 'good';
  if (event.startsWith('agent.') || event === 'memory.superseded' || event === 'memory.archived') return 'quiet';
  return 'plain';
}

export const STRATEGIES: Record<string, { name: string; how: string }> = {
  last_write_wins: { name: 'Later one', how: 'The side that was committed later prevails.' },
  confidence_weighted: { name: 'Surer one', how: 'The side with the greater confidence prevails; a tie escalates.' },
  evidence_count: { name: 'Better supported', how: 'More live units that support it, then more evidence; a tie escalates.' },
  synthesis: { name: 'Synthesis', how: 'Neither: your text takes the place of both.' },
  vote: { name: 'Vote', how: 'Your ballot for one side; more than half of the quorum decides.' },
  authority: { name: 'Authority', how: 'Whoever outranks the other. Without tokens all are equal, so it escalates.' },
  human_escalation: { name: 'A person decides', how: 'You choose the side. Before that the conflict is escalated.' },
};

/** A hue for a name, the same everywhere and always. */
export function hueOf(name: string): number {
  let hash = 2166136261;
  for (let at = 0; at < name.length; at += 1) {
    hash ^= name.charCodeAt(at);
    hash = Math.imul(hash, 16777619);
  }
  // Golden-angle steps keep neighbours in the hash apart, and clear of the vermilion that means conflict.
  return Math.round(70 + ((((hash >>> 0) % 29) * 137.5) % 290)) % 360;
}

/** One or two letters that stand for a name. */
export function initials(name: string): string {
  const parts = name.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const first = [...(parts[0] ?? '?')][0] ?? '?';
  const last = parts.length > 1 ? [...(parts.at(-1) ?? '')].slice(-1)[0] ?? '' : '';
  return (first + last).toUpperCase();
}
