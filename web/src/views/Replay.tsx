/** How something came about: its timeline, walked or played over the graph. */

import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { conflicts, ensure, unit, unitsTick } from '../hub/field';
import { get, inWords, look, Refused } from '../hub/http';
import type { Replayed, ReplayEvent, Unit } from '../hub/types';
import { Canvas } from '../graph/Canvas';
import { Legend } from '../graph/LoomView';
import { AgentLink, Empty, Epoch, Line, Problem, Said, Select, UnitLink } from '../parts/bits';
import { Icon } from '../parts/icons';
import { knotOf } from '../parts/Timeline';
import { useAsked } from '../parts/use';
import { address, go, route } from '../route';
import { still } from '../theme';
import { sidesOf } from '../words/clash';
import { count } from '../words/figures';
import { standingAt, type Step, stepsOf } from '../words/steps';
import { oneLine, shown } from '../words/text';

const TARGETS = [
  ['memory_unit', 'Unit'], ['decision', 'Decision'], ['conflict', 'Conflict'], ['task', 'Task'], ['session', 'Session'],
] as const;
/** Units drawn: the last ones of a long timeline. */
const DRAWN_MAX = 90;
/** Events listed at once, around where the replay stands. */
const LISTED = 100;
/** Units named in one row. */
const NAMED = 6;
const NOTHING: ReplayEvent[] = [];
const PACES = [['2200', 'Slow'], ['1100', 'Normal'], ['450', 'Fast']] as const;

export default function Replay(): JSX.Element {
  const [target, id] = route.value.path;
  return (
    <div class="view">
      <Chooser target={target ?? 'memory_unit'} id={id ?? ''} />
      {target && id ? <Played key={`${target}/${id}`} target={target} id={id} /> : <Suggestions />}
    </div>
  );
}

function Chooser({ target, id }: { target: string; id: string }): JSX.Element {
  const [kind, setKind] = useState(target);
  const [text, setText] = useState(id);
  useEffect(() => {
    setKind(target);
    setText(id);
  }, [target, id]);
  const play = (event: Event): void => {
    event.preventDefault();
    if (text.trim()) go(address('replay', [kind, text.trim()]));
  };
  return (
    <form class="bar" role="search" onSubmit={play}>
      <Select label="What to replay" value={kind} options={TARGETS} onChange={setKind} />
      <div class="grow"><Icon name="replay" size={16} /><input class="input" data-search value={text} placeholder={kind === 'task' ? 'task-market-sizing' : kind === 'conflict' ? 'conflict-7' : kind === 'session' ? 'session-1' : 'mem-7'} aria-label="Its id" onInput={(event) => setText(event.currentTarget.value)} /></div>
      <button type="submit" class="button">Replay</button>
    </form>
  );
}

/** What is worth a replay, where nothing was named. */
function Suggestions(): JSX.Element {
  const decisions = useAsked<{ units: Unit[] }>((signal) => get('units?order=newest&limit=8&type=decision', signal), []);
  const recent = useAsked<{ units: Unit[] }>((signal) => get('units?order=newest&limit=200', signal), []);
  const carried = (of: (it: Unit) => string | null): string[] => [...new Set((recent.value?.units ?? []).flatMap((it) => of(it) ?? []))].slice(0, 8);
  const tasks = carried((it) => it.intent.task_id);
  const sessions = carried((it) => it.source.session_id);
  const clashes = conflicts.value.slice(0, 8);
  const nothing = decisions.value?.units.length === 0 && tasks.length + sessions.length + clashes.length === 0;
  if (decisions.error) return <Problem text={decisions.error} retry={decisions.again} />;
  if (nothing) return <Empty title="Nothing to replay yet"><p>Decisions, conflicts, tasks and sessions appear here.</p></Empty>;
  return (
    <div class="suggest view-scroll" tabIndex={0} role="region" aria-label="What can be replayed">
      {(decisions.value?.units.length ?? 0) > 0 && (
        <section><h2>How was this decided?</h2><ul>{decisions.value?.units.map((it) => <li key={it.id}><a href={address('replay', ['decision', it.id])}><span class="id">{it.id}</span><Line text={it.content} most={140} /></a></li>)}</ul></section>
      )}
      {clashes.length > 0 && (
        <section><h2>How did this contradiction come about?</h2><ul>{clashes.map((one) => <li key={one.id}><a href={address('replay', ['conflict', one.id])}><span class="id id-clash">{one.id}</span><Line text={sidesOf(one.description)?.reverse().map((side) => oneLine(side, 70)).join(' / ') ?? one.description} most={150} /></a></li>)}</ul></section>
      )}
      {tasks.length > 0 && <section><h2>What happened in this task?</h2><ul>{tasks.map((one) => <li key={one}><a href={address('replay', ['task', one])}><Icon name="list" size={15} /><bdi>{shown(one)}</bdi></a></li>)}</ul></section>}
      {sessions.length > 0 && <section><h2>And in this session?</h2><ul>{sessions.map((one) => <li key={one}><a href={address('replay', ['session', one])}><Icon name="list" size={15} /><bdi>{shown(one)}</bdi></a></li>)}</ul></section>}
    </div>
  );
}

/** The hub's own account: what it comes to, and all of it on demand. */
function Account({ text }: { text: string }): JSX.Element {
  const end = text.indexOf('. ');
  const [head, rest] = end < 0 ? [text, ''] : [text.slice(0, end + 1), text.slice(end + 2)];
  return (
    <div class="account" tabIndex={0} role="region" aria-label="Account">
      <p><bdi dir="auto">{oneLine(head, 400)}</bdi></p>
      {rest && <details><summary>In words</summary><Said text={rest} most={3_000} small /></details>}
    </div>
  );
}

/** A replay, or why there is none, in the words of this page. */
async function replayed(target: string, id: string, signal: AbortSignal): Promise<Replayed> {
  try {
    return await look<Replayed>('replay', { target_type: target, target_id: id, depth: 'full_trace' }, undefined, signal);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const word = TARGETS.find(([key]) => key === target)?.[1].toLowerCase();
    if (!word) throw new Error(`A ${target} cannot be replayed: choose a unit, a decision, a conflict, a task or a session.`);
    if (error.code.endsWith('NOT_FOUND')) throw new Error(`There is no ${word} ${shown(id)} in this Field.${target === 'decision' ? ' What is not a decision is replayed as a unit.' : ''}`);
    throw new Error(error.code === 'INVALID_MESSAGE' ? `${shown(id)} is no id of a ${word}.` : inWords(error));
  }
}

function Played({ target, id }: { target: string; id: string }): JSX.Element {
  const asked = useAsked<Replayed>((signal) => replayed(target, id, signal), [target, id]);
  const told = asked.value?.timeline ?? NOTHING;
  const timeline = useMemo(() => stepsOf(told), [told]);
  const [at, setAt] = useState(0);
  const [playing, setPlaying] = useState(false);
  const [pace, setPace] = useState('1100');
  const last = timeline.length - 1;
  const ids = useMemo(() => [...new Set(told.flatMap((event) => event.memory_unit_id ?? []))].slice(-DRAWN_MAX), [told]);
  const [units, setUnits] = useState<Unit[]>([]);
  useEffect(() => {
    let gone = false;
    void ensure(ids).then(() => {
      if (!gone) setUnits(ids.flatMap((one) => unit(one) ?? []));
      unitsTick.value += 1;
    });
    return () => {
      gone = true;
    };
  }, [ids]);
  // Opened whole: what there is comes first, how it came about on demand.
  useEffect(() => setAt(Math.max(0, last)), [last]);

  useEffect(() => {
    if (!playing) return;
    if (at >= last) {
      setPlaying(false);
      return;
    }
    const timer = setTimeout(() => setAt((old) => Math.min(last, old + 1)), Number(pace));
    return () => clearTimeout(timer);
  }, [playing, at, last, pace]);

  const toggle = (): void => {
    if (!playing && at >= last) setAt(0);
    setPlaying(!playing);
  };
  const toggling = useRef(toggle);
  toggling.current = toggle;
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key !== ' ' || (event.target as HTMLElement).closest('input, textarea, select, button, a, dialog')) return;
      event.preventDefault();
      toggling.current();
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, []);

  const standing = useMemo(() => standingAt(timeline, at, units), [timeline, at, units]);
  const now = timeline[at];
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const row = list.current?.querySelector<HTMLElement>('li.now');
    const box = list.current;
    if (!row || !box) return;
    const top = row.offsetTop - box.offsetTop;
    if (top < box.scrollTop + 20 || top > box.scrollTop + box.clientHeight - 90) box.scrollTo({ top: top - box.clientHeight / 2, behavior: still.value ? 'auto' : 'smooth' });
  }, [at, timeline]);

  if (asked.error) return <Problem text={asked.error} retry={asked.again} />;
  if (!asked.value) return <Empty title="Reading the log…" />;
  const from = Math.max(0, Math.min(at - LISTED / 2, last + 1 - LISTED));
  return (
    <>
      <div class="replay">
        <section class="timeline" aria-label="Timeline">
          <Account text={asked.value.summary} />
          <div class="timeline-list" ref={list} tabIndex={0} role="region" aria-label="Events">
            {from > 0 && <p class="muted">{count(from)} earlier</p>}
            <ol class="chain">
              {timeline.slice(from, from + LISTED).map((step, offset) => {
                const place = from + offset;
                return <StepRow key={place} step={step} state={place === at ? 'now' : place > at ? 'later' : ''} onChoose={() => { setPlaying(false); setAt(place); }} />;
              })}
            </ol>
            {from + LISTED <= last && <p class="muted">{count(last + 1 - from - LISTED)} later</p>}
          </div>
        </section>
        <div class="loom">
          {units.length > 0
            ? <Canvas units={units} standing={standing} chosen={now?.event.memory_unit_id ?? null} label={`${units.length} units of this timeline.`} onChoose={(one) => { const place = timeline.findIndex(({ event }) => event.memory_unit_id === one); if (place >= 0) { setPlaying(false); setAt(place); } }} />
            : <Empty title="This timeline names no units" />}
          <Legend />
        </div>
      </div>
      <div class="player">
        <button type="button" class="button button-icon" aria-label="One step back" disabled={at <= 0} onClick={() => { setPlaying(false); setAt(at - 1); }}><Icon name="back" /></button>
        <button type="button" class="button button-main" onClick={toggle} disabled={last < 1}><Icon name={playing ? 'pause' : 'play'} size={15} /> {playing ? 'Stop' : 'Play'}</button>
        <button type="button" class="button button-icon" aria-label="One step on" disabled={at >= last} onClick={() => { setPlaying(false); setAt(at + 1); }}><Icon name="next" /></button>
        <input type="range" min="0" max={Math.max(0, last)} value={at} aria-label="Place in the timeline" aria-valuetext={now ? `Event ${at + 1} of ${timeline.length}, epoch ${now.event.epoch}` : ''} onInput={(event) => { setPlaying(false); setAt(Number(event.currentTarget.value)); }} />
        <span class="when">{count(at + 1)} of {count(timeline.length)}</span>
        <span class="wide-only"><Select label="Pace" value={pace} options={PACES} onChange={setPace} /></span>
      </div>
      <p class="unseen" aria-live="polite">{now && !playing ? oneLine(now.words, 200) : ''}</p>
    </>
  );
}

function StepRow({ step: { event, words, units }, state, onChoose }: { step: Step; state: string; onChoose: () => void }): JSX.Element {
  return (
    <li class={state} aria-current={state === 'now' ? 'step' : undefined}>
      <span class={knotOf(event)} aria-hidden="true" />
      <div>
        <button type="button" class="chain-what" onClick={onChoose}><bdi dir="auto">{shown(words)}</bdi></button>
        <div class="chain-meta">
          <Epoch epoch={event.epoch} timestamp={event.timestamp} />
          <AgentLink id={event.agent_id} mark={false} />
          {event.memory_unit_id && <UnitLink id={event.memory_unit_id} />}
          {units.slice(0, NAMED).map((one) => <UnitLink key={one} id={one} />)}
          {units.length > NAMED && <span>and {count(units.length - NAMED)} more</span>}
        </div>
      </div>
    </li>
  );
}
