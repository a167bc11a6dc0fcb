import { describe, expect, it } from 'vitest';
import type { Conflict, Notification, ReplayEvent, Scored, Unit, UnitInFull } from '../src/hub/types';
import { clash, sidesOf } from '../src/words/clash';
import { Refused } from '../src/hub/http';
import { meant, outcome, payloadOf, refusedWords, type Wish } from '../src/words/compacting';
import { bytes, compact, milliseconds } from '../src/words/figures';
import { matcher } from '../src/words/filter';
import { foresee } from '../src/words/foresee';
import { hueOf, initials, RELATIONS, weightOf } from '../src/words/names';
import { clamp, oneLine, shown } from '../src/words/text';

const own = (pieces: { text: string; own: boolean }[]): string[] => pieces.filter((piece) => piece.own).map((piece) => piece.text);
const whole = (pieces: { text: string }[]): string => pieces.map((piece) => piece.text).join('');
import { gathered, sentence } from '../src/words/gathered';
import { byCloseness } from '../src/words/closeness';
import { standingAt, stepsOf } from '../src/words/steps';

describe('clash', () => {
  it('marks what the other side does not say', () => {
    const [a, b] = clash('The market grows at 23% a year.', 'The market grows at 14% a year only.');
    expect(own(a)).toEqual(['23%']);
    expect(own(b)).toEqual(['14%', 'only.']);
  });

  it('loses no character', () => {
    for (const [a, b] of [['', ''], ['  a  b ', 'a'], ['x', ''], ['שלום עולם', 'hello שלום'], ['a\n\nb', 'a b c']] as const) {
      const [left, right] = clash(a, b);
      expect([whole(left), whole(right)]).toEqual([a.trim() === '' ? '' : a, b.trim() === '' ? '' : b]);
    }
  });

  it('marks nothing where next to nothing is said alike', () => {
    const [a, b] = clash('one two three four five six', 'seven eight nine ten eleven twelve');
    expect([own(a), own(b)]).toEqual([[], []]);
  });

  it('is quick with the longest texts', () => {
    const text = Array.from({ length: 60_000 }, (_, at) => `w${at % 97}`).join(' ');
    expect(whole(clash(text, `${text} end`)[0])).toBe(text);
  });
});

describe('text from outside', () => {
  it('shows signs that would turn or hide what follows', () => {
    expect(shown('a\u202Eb\u2066c\u0000')).toBe('a\u2423b\u2423c\u2400');
    expect(shown('line\nbreak\ttab é 👩‍👩‍👧 שלום')).toBe('line\nbreak\ttab é 👩‍👩‍👧 שלום');
  });

  it('cuts between characters', () => {
    expect(oneLine('👍👍👍', 2)).toBe('👍👍…');
    expect(oneLine(' a \n b ', 10)).toBe('a b');
    const { head, more } = clamp(`${'x'.repeat(1_199)}👍${'y'.repeat(1_000)}`);
    expect(head.endsWith('x')).toBe(true);
    expect(head.length + more).toBe(2_201);
  });

  it('looks at no more of a long text than it shows', () => {
    expect(oneLine(' '.repeat(200_000), 10)).toBe('…');
    expect([...oneLine('a'.repeat(1_000_000), 100)].length).toBe(101);
  });
});

describe('names', () => {
  it('tells nine relations apart by colour and by stroke', () => {
    const looks = Object.values(RELATIONS);
    expect(looks.length).toBe(9);
    for (const key of ['light', 'dark', 'out', 'in'] as const) expect(new Set(looks.map((look) => look[key])).size).toBe(9);
    expect(new Set(looks.map((look) => `${look.line}${look.dash}${look.arrow}`)).size).toBe(9);
  });

  it('gives each name one hue and letters', () => {
    expect(hueOf('ada')).toBe(hueOf('ada'));
    expect([initials('researcher-01'), initials('ada'), initials('👍'), initials('')]).toEqual(['R1', 'A', '?', '?']);
  });

  it('weighs what asks for a person', () => {
    expect(['conflict.detected', 'conflict.escalated', 'memory.contested'].map(weightOf)).toEqual(['clash', 'clash', 'clash']);
    expect([weightOf('conflict.resolved'), weightOf('memory.recorded'), weightOf('agent.left')]).toEqual(['good', 'plain', 'quiet']);
  });
});

describe('figures', () => {
  it('are short', () => {
    expect([compact(0), compact(1.25), compact(12_345), compact(3_200_000)]).toEqual(['0', '1.3', '12.3k', '3.2M']);
    expect([bytes(512), bytes(1_536), bytes(3 * 1_048_576)]).toEqual(['512 B', '1.5 KiB', '3 MiB']);
    expect([milliseconds(0.00036), milliseconds(0.041), milliseconds(Number.NaN)]).toEqual(['0.36 ms', '41 ms', '–']);
  });
});

describe('filter', () => {
  const event = { event: 'memory.recorded', agent_id: 'ada', task_id: 't-1', summary: 'ada recorded', memory_unit_id: 'mem-3', conflict_id: null } as never;
  const none = { text: '', agent: '', type: '', task: '', session: '', kind: '' };
  it('takes what matches all that was asked', () => {
    expect(matcher(none)(event)).toBe(true);
    expect(matcher({ ...none, text: 'MEM-3', agent: 'ada', task: 't-1', kind: 'memory' })(event)).toBe(true);
    expect(matcher({ ...none, text: 'recorded task:t-1 agent:ada' })(event)).toBe(true);
    expect(matcher({ ...none, text: 'task:t-2' })(event)).toBe(false);
    for (const change of [{ text: 'xyz' }, { agent: 'ben' }, { task: 't' }, { kind: 'conflict' }, { type: 'finding' }, { session: 's' }]) {
      expect(matcher({ ...none, ...change })(event)).toBe(false);
    }
  });
});

describe('foresee', () => {
  const side = (id: string, epoch: number, score: number | null, supports = 0): UnitInFull => ({
    id, epoch, confidence: score === null ? null : { score, reason: '' },
    inbound_relations: Array.from({ length: supports }, () => ({ type: 'supports', source_id: 'x', description: null })),
  }) as unknown as UnitInFull;
  const conflict = { status: 'detected' } as Conflict;
  it('tells what the two sides alone decide', () => {
    expect(foresee('last_write_wins', conflict, side('mem-1', 1, 0.5), side('mem-2', 2, 0.5))).toContain('mem-2');
    expect(foresee('confidence_weighted', conflict, side('mem-1', 1, 0.9), side('mem-2', 2, 0.5))).toContain('mem-1');
    expect(foresee('confidence_weighted', conflict, side('mem-1', 1, 0.5), side('mem-2', 2, 0.5))).toContain('escalated');
    expect(foresee('confidence_weighted', conflict, side('mem-1', 1, null), side('mem-2', 2, 0.5))).toContain('missing');
  });
  it('says nothing where it does not know', () => {
    expect(foresee('evidence_count', conflict, side('mem-1', 1, 0.9, 2), side('mem-2', 2, 0.5))).toBeNull();
    expect(foresee('authority', conflict, side('mem-1', 1, 0.9), side('mem-2', 2, 0.5))).toBeNull();
  });
});

describe('compacting in words', () => {
  const wish: Wish = { strategy: 'archive', age: '', type: '', status: 'superseded', session: '', reason: '' };

  it('asks for what the form says, and confirms a purge', () => {
    expect(payloadOf(wish)).toEqual({ strategy: 'archive', filter: { status: ['superseded'] } });
    expect(payloadOf({ ...wish, strategy: 'summarize', status: '', age: '0', type: 'finding', session: ' s-1 ', reason: ' old ' }))
      .toEqual({ strategy: 'summarize', filter: { max_age_epochs: 0, types: ['finding'], session_id: 's-1' }, reason: 'old' });
    expect(payloadOf({ ...wish, strategy: 'purge', status: '' })).toEqual({ strategy: 'purge', filter: { max_age_epochs: 0 }, confirm: true });
  });

  it('says what is meant and what came of it', () => {
    expect(meant({ ...wish, age: '1', session: 's-1' })).toBe('with the status superseded, of the session s-1, older than 1 epoch');
    expect(meant({ ...wish, status: '', age: '0' })).toBe('all that there are');
    const found = { units_affected: 1, synthesis_units_created: 0, storage_reclaimed_bytes: null };
    expect(outcome('archive', found)).toBe('1 unit archived.');
    expect(outcome('summarize', { ...found, units_affected: 9, synthesis_units_created: 1 })).toBe('9 units archived behind 1 synthesis.');
    expect(outcome('purge', { ...found, storage_reclaimed_bytes: 2_048 })).toBe('1 unit purged, 2 KiB of memory given back.');
  });

  it('says no in the form\'s own words', () => {
    expect(refusedWords(new Refused({ code: 'INVALID_MESSAGE', message: 'filter.session_id is too long.' }))).toContain('The session is not a name');
    expect(refusedWords(new Refused({ code: 'UNSUPPORTED_OPERATION', message: 'COMPACT with strategy purge …' }))).toContain('does not do that');
  });
});

describe('a search', () => {
  const hit = (id: string, lexical: number, semantic: number, relations: number, score: number): Scored => ({
    memory_unit: { id } as Unit, relevance_score: score, relevance_reason: '', format: 'full',
    // As the hub tells them: what each counts shrinks together where much comes together.
    factors: { lexical: { value: lexical, contribution: lexical * 0.5 * score }, semantic: { value: semantic, contribution: semantic * 0.3 * score }, relations: { value: relations, contribution: relations * score } },
  });
  it('puts what is close in words and meaning before what stands next to it', () => {
    const found = byCloseness([hit('next to it', 0, 0.1, 0.9, 0.7), hit('said so', 0.6, 0.4, 0, 0.6), hit('means it', 0, 0.8, 0, 0.5)]);
    expect(found.map(({ hit: it }) => it.memory_unit.id)).toEqual(['said so', 'means it', 'next to it']);
    const own = 0.6 * (5 / 3) + 0.4;
    expect(found[0]?.closeness).toBeCloseTo(own / (1 + own));
  });
  it('stays in the hub\'s order where no factors are told', () => {
    const bare = (id: string): Scored => ({ memory_unit: { id } as Unit, relevance_score: 0.5, relevance_reason: '', format: 'full' });
    const found = byCloseness([bare('b'), bare('a')]);
    expect(found.map(({ hit: it, closeness }) => [it.memory_unit.id, closeness])).toEqual([['b', null], ['a', null]]);
  });
});

describe('a timeline in steps', () => {
  const event = (epoch: number, event_type: string, memory_unit_id: string | null, description = ''): ReplayEvent =>
    ({ epoch, event_type, agent_id: 'ann', description, memory_unit_id, task_id: null });
  const it_ = (id: string, relations: Unit['relations'] = [], more: Partial<Unit> = {}): Unit => ({ id, relations, status: 'active', ...more }) as Unit;
  const timeline = [
    event(1, 'RECORD', 'mem-1'), event(2, 'RECORD', 'mem-2'), event(2, 'CONFLICT_CREATED', null), event(3, 'MERGE', 'mem-2'), event(4, 'RECORD', 'mem-4'),
    event(5, 'ARCHIVE', 'mem-1', 'Archived mem-1: Tidy up: all of it'), event(5, 'ARCHIVE', 'mem-2', 'Archived mem-2: Tidy up: all of it'),
    event(6, 'ARCHIVE', 'mem-4', 'Archived mem-4: Alone'),
  ];
  const units = [
    it_('mem-1', [], { status: 'superseded', archived: true }),
    it_('mem-2', [{ type: 'contradicts', target_id: 'mem-1', description: null }], { status: 'superseded', archived: true }),
    it_('mem-4', [{ type: 'supersedes', target_id: 'mem-2', description: null }], { status: 'retracted', archived: true }),
  ];
  const steps = stepsOf(timeline);
  it('takes what one COMPACT put away as one', () => {
    expect(steps.map((step) => step.event.event_type)).toEqual(['RECORD', 'RECORD', 'CONFLICT_CREATED', 'MERGE', 'RECORD', 'ARCHIVE', 'ARCHIVE']);
    expect(steps[5]).toMatchObject({ words: '2 units archived by COMPACT: Tidy up: all of it', units: ['mem-1', 'mem-2'], event: { memory_unit_id: null } });
    expect(steps[6]).toMatchObject({ words: 'Archived mem-4: Alone', units: [] });
  });
  it('shows each unit as it stood then', () => {
    const at = (place: number): Record<string, string> =>
      Object.fromEntries([...standingAt(steps, place, units)].map(([id, { status, archived }]) => [id, archived ? `${status}, archived` : status]));
    expect(at(0)).toEqual({ 'mem-1': 'active' });
    expect(at(1)).toEqual({ 'mem-1': 'contested', 'mem-2': 'contested' });
    expect(at(3)).toEqual({ 'mem-1': 'superseded', 'mem-2': 'active' });
    expect(at(4)).toEqual({ 'mem-1': 'superseded', 'mem-2': 'superseded', 'mem-4': 'active' });
    expect(at(5)).toEqual({ 'mem-1': 'superseded, archived', 'mem-2': 'superseded, archived', 'mem-4': 'active' });
    // The end is what is so now, whatever the timeline does not tell.
    expect(at(6)).toEqual({ 'mem-1': 'superseded, archived', 'mem-2': 'superseded, archived', 'mem-4': 'retracted, archived' });
  });
});

describe('the stream in rows', () => {
  const told = (cursor: string, event: string, summary = ''): Notification => ({
    subscription_id: 'observer', event, epoch: Number(cursor.split('.')[0]), cursor, summary, memory_unit_id: null, conflict_id: null,
    agent_id: 'ann', task_id: null, requires_action: false,
  });
  it('gathers what one COMPACT put away, and nothing else', () => {
    const rows = gathered([
      told('9.0', 'memory.recorded'), told('8.3', 'memory.archived', 'mem-3 was archived: Old: all'), told('8.2', 'memory.archived', 'mem-2 was archived: Old: all'),
      told('7.1', 'memory.archived', 'mem-1 was archived: Alone'), told('6.1', 'memory.recorded'), told('6.0', 'memory.recorded'),
    ]);
    expect(rows.map(({ event, many }) => [event.cursor, many])).toEqual([['9.0', 1], ['8.2', 2], ['7.1', 1], ['6.1', 1], ['6.0', 1]]);
    expect(rows.slice(1, 3).map(sentence)).toEqual(['2 units were archived: Old: all', 'mem-1 was archived: Alone']);
  });
});

describe('the sides of a conflict', () => {
  it('are read from the hub\'s words, quotes in them and all', () => {
    expect(sidesOf('finding mem-2 ("It is "red".") contradicts finding mem-1 ("It is blue.")')).toEqual(['It is "red".', 'It is blue.']);
    expect(sidesOf('"6 weeks" against "3 weeks" for new customer')).toBeNull();
  });
});
