/** The stream as it commits. */

import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { agents, conflicts, events, eventsTick, hear, historyFrom, line, loadEarlier, rates, status } from '../hub/field';
import { inWords } from '../hub/http';
import { MEMORY_TYPES, type Notification } from '../hub/types';
import { AgentLink, Avatar, Empty, Epoch, Line, Problem, Select } from '../parts/bits';
import { Icon, TypeMark } from '../parts/icons';
import { Pulse } from '../parts/Pulse';
import { useMedia } from '../parts/use';
import { VirtualList } from '../parts/VirtualList';
import { address, go, route, unitAddress, withQuery } from '../route';
import { compact } from '../words/figures';
import { eventWord, TYPE_WORDS, weightOf } from '../words/names';
import { type Filter, matcher } from '../words/filter';
import { gathered, sentence, type Told } from '../words/gathered';

const KINDS = [
  ['', 'Everything'], ['memory', 'Memory'], ['conflict', 'Conflicts'], ['agent', 'Agents'],
] as const;

export const paused = signal(false);

function filterOf(query: URLSearchParams): Filter {
  return {
    text: query.get('text') ?? '', agent: query.get('agent') ?? '', type: query.get('type') ?? '',
    task: query.get('task') ?? '', session: query.get('session') ?? '', kind: query.get('kind') ?? '',
  };
}

/** What is listed, newest first: the list itself is made anew only where it changed. */
function useListed(filter: Filter): { listed: Told[]; fresh: number; waiting: number } {
  const tick = eventsTick.value;
  const key = JSON.stringify(filter);
  const held = useRef<{ key: string; listed: Told[] } | null>(null);
  const waiting = useRef(0);
  const fresh = useRef(0);
  useEffect(() => hear((batch) => {
    if (paused.peek()) waiting.current += batch.filter(matcher(filter)).length;
  }), [key]);
  const listed = useMemo(() => {
    if (paused.value && held.current?.key === key) return held.current.listed;
    const matches = matcher(filter);
    const found: Notification[] = [];
    const all = events.all();
    for (let at = all.length - 1; at >= 0; at -= 1) {
      const one = all[at];
      if (one && matches(one)) found.push(one);
    }
    return gathered(found);
  }, [key, tick, paused.value, historyFrom.value]);
  if (!paused.value) waiting.current = 0;
  const before = held.current;
  if (before && before.listed !== listed && before.key === key) {
    const top = before.listed[0]?.event.cursor;
    fresh.current += Math.max(0, listed.findIndex(({ event }) => event.cursor === top));
  }
  held.current = { key, listed };
  return { listed, fresh: fresh.current, waiting: waiting.current };
}

export function Live(): JSX.Element {
  const query = route.value.query;
  const filter = filterOf(query);
  const { listed, fresh, waiting } = useListed(filter);
  const narrow = useMedia('(max-width: 820px)');
  const [earlier, setEarlier] = useState<{ busy: boolean; error: string | null }>({ busy: false, error: null });
  const [atTop, setAtTop] = useState(true);
  const seen = useRef(0);
  if (atTop) seen.current = fresh;
  const unseen = fresh - seen.current;

  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key !== ' ' || (event.target as HTMLElement).closest('input, textarea, select, button, a, dialog')) return;
      event.preventDefault();
      paused.value = !paused.value;
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, []);

  const more = async (): Promise<void> => {
    setEarlier({ busy: true, error: null });
    try {
      await loadEarlier();
      setEarlier({ busy: false, error: null });
    } catch (error) {
      setEarlier({ busy: false, error: inWords(error) });
    }
  };
  const set = (change: Record<string, string | null>): void => go(withQuery(change), true);
  const isFiltered = Object.values(filter).some(Boolean);
  return (
    <div class="view">
      <Vitals />
      <div class="bar" role="search">
        <div class="grow"><Icon name="search" size={16} /><input class="input" data-search type="search" placeholder="Filter by text, id, task:… or session:…" aria-label="Filter by text" value={filter.text} onInput={(event) => set({ text: event.currentTarget.value || null })} /></div>
        <Select label="What" value={filter.kind} options={KINDS} onChange={(kind) => set({ kind: kind || null })} />
        <Select label="Type of unit" value={filter.type} options={[['', 'All types'], ...MEMORY_TYPES.map((type) => [type, TYPE_WORDS[type]] as const)]} onChange={(type) => set({ type: type || null })} />
        <Select label="Agent" value={filter.agent} options={[['', 'All agents'], ...agents.value.slice(0, 500).map((agent) => [agent.id, agent.id] as const)]} onChange={(agent) => set({ agent: agent || null })} />
        {filter.task && <button type="button" class="button" onClick={() => set({ task: null })}>Task {filter.task} <Icon name="close" size={13} /></button>}
        {filter.session && <button type="button" class="button" onClick={() => set({ session: null })}>Session {filter.session} <Icon name="close" size={13} /></button>}
        <button type="button" class="button" aria-pressed={paused.value} onClick={() => { paused.value = !paused.value; }}>
          <Icon name={paused.value ? 'play' : 'pause'} size={15} /> {paused.value ? (waiting > 0 ? `Resume · ${compact(waiting)} new` : 'Resume') : 'Pause'}
        </button>
      </div>
      {earlier.error && <Problem text={earlier.error} retry={() => void more()} />}
      <div class="list-wrap">
        {unseen > 0 && !atTop && (
          <button type="button" class="button button-main newer" onClick={() => document.querySelector('.virtual')?.scrollTo({ top: 0 })}>{compact(unseen)} new above</button>
        )}
        {listed.length === 0 ? (
          <Empty title={line.value.state === 'live' ? (isFiltered ? 'Nothing here matches the filter' : 'Nothing has happened lately') : 'Waiting for the hub'}>
            {isFiltered ? <button type="button" class="link" onClick={() => go(address('live'), true)}>Clear the filter</button> : <p>What agents do appears here the moment it is durable.</p>}
            {historyFrom.value > 0 && <button type="button" class="link" onClick={() => void more()}>Look further back</button>}
          </Empty>
        ) : (
          <VirtualList
            label="Events, newest first"
            count={listed.length}
            rowHeight={narrow ? 68 : 46}
            prepended={fresh}
            keyOf={(at) => listed[at]?.event.cursor ?? String(at)}
            row={(at) => <Row told={listed[at] as Told} />}
            onTop={setAtTop}
            foot={
              <div class="list-foot">
                {historyFrom.value > 0
                  ? <button type="button" class="link" disabled={earlier.busy} onClick={() => void more()}>{earlier.busy ? 'Loading…' : 'Earlier events'}</button>
                  : 'The Field begins here'}
              </div>
            }
          />
        )}
      </div>
    </div>
  );
}

function Row({ told }: { told: Told }): JSX.Element {
  const { event, many } = told;
  const weight = weightOf(event.event);
  const to = event.conflict_id
    ? address('conflicts', [event.conflict_id])
    : many > 1 ? address('memory', [], { status: 'archived' })
    : event.memory_unit_id ? unitAddress(event.memory_unit_id) : address('agents', [event.agent_id]);
  const it = many > 1 ? undefined : event.memory_unit;
  const own = event.event === 'memory.recorded' && it;
  return (
    <div class={`event event-${weight}`} onClick={(click) => { if (!(click.target as HTMLElement).closest('a, button')) go(to); }}>
      <span class="event-word">{eventWord(event.event)}</span>
      <span class="event-mark"><Avatar name={event.agent_id} size={22} /></span>
      <span class="event-agent"><AgentLink id={event.agent_id} mark={false} /></span>
      <span class="event-type">{it && <TypeMark type={it.type} />}</span>
      <a class={own ? 'event-main' : 'event-main event-plainly'} data-main href={to}>
        <Line text={own ? it.content : sentence(told)} />
      </a>
      <Epoch epoch={event.epoch} timestamp={it && own ? it.source.timestamp : null} />
    </div>
  );
}

/** How the Field is, in three figures and a line. */
function Vitals(): JSX.Element {
  const now = status.value;
  const last = rates.value.at(-1);
  const escalated = conflicts.value.filter((one) => one.status === 'escalated').length;
  const open = now?.conflicts_unresolved ?? 0;
  return (
    <section class="pulse" aria-label="Vital signs">
      <div class="pulse-figures">
        <div class="figure"><b>{last ? compact(last.operations) : '–'}</b><span>operations/s</span></div>
        <div class="figure"><b>{now ? compact(now.agents_active) : '–'}</b><span>{now?.agents_active === 1 ? 'agent' : 'agents'} here</span></div>
        <div class={open > 0 ? 'figure figure-clash' : 'figure'}><a href={address('conflicts')}><b>{now ? compact(open) : '–'}</b><span>{open === 1 ? 'open conflict' : 'open conflicts'}{escalated > 0 ? `, ${escalated} for you` : ''}</span></a></div>
      </div>
      <Pulse />
    </section>
  );
}
