/** The frame of the page: where one can go, how the line to the hub is, who the person is. */

import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { lazy, Suspense } from 'preact/compat';
import { useEffect, useState } from 'preact/hooks';
import { line, problem, status, theLine } from './hub/field';
import { fieldName, fields } from './hub/http';
import { asking, person } from './hub/person';
import { shortcuts } from './keys';
import { Avatar, Dialog, Select, unresolvedCount } from './parts/bits';
import { Icon } from './parts/icons';
import { Name } from './parts/Name';
import { Compose, composing } from './parts/Compose';
import { UnitPanel } from './parts/UnitPanel';
import { address, openUnit, route, type View, VIEWS } from './route';
import { choice, dark } from './theme';
import { count } from './words/figures';
import { Agents } from './views/Agents';
import { Conflicts } from './views/Conflicts';
import { Live } from './views/Live';
import { Memory } from './views/Memory';
import { Welcome } from './views/Welcome';

// What needs the charts or the player comes when it is asked for.
const Replay = lazy(() => import('./views/Replay'));
const Field = lazy(() => import('./views/Field'));

const TITLES: Record<View, string> = {
  live: 'Live', memory: 'Memory', conflicts: 'Conflicts', agents: 'Agents', replay: 'Replay', field: 'Field',
};

export const helping = signal(false);

export function App(): JSX.Element {
  useEffect(() => shortcuts(), []);
  const { view } = route.value;
  // Another view begins where its heading is.
  useEffect(() => {
    document.title = `${TITLES[view]} · Akashik`;
  }, [view]);
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById('main')?.focus(); }}>Skip to content</a>
      <Rail />
      <Head title={TITLES[view]} />
      <main class="main" id="main" tabIndex={-1} aria-label={TITLES[view]}>
        <Suspense fallback={<div class="view" />}>{shownView(view)}</Suspense>
        {openUnit.value && <UnitPanel key={openUnit.value} id={openUnit.value} />}
      </main>
      {asking.value && <Name />}
      {composing.value && <Compose about={composing.value.about} />}
      {helping.value && <Help />}
    </div>
  );
}

function shownView(view: View): JSX.Element {
  const now = status.value;
  // Nobody was ever here: what is there to show is how to begin.
  if (now && now.log_entries === 0 && now.agents === 0 && view !== 'field') return <Welcome />;
  switch (view) {
    case 'memory': return <Memory />;
    case 'conflicts': return <Conflicts />;
    case 'agents': return <Agents />;
    case 'replay': return <Replay />;
    case 'field': return <Field />;
    default: return <Live />;
  }
}

function Rail(): JSX.Element {
  const open = unresolvedCount();
  return (
    <nav class="rail" aria-label="Views">
      <div class="brand"><Mark /> Akashik</div>
      <div class="nav">
        {VIEWS.map((view) => (
          <a key={view} href={address(view)} aria-current={route.value.view === view ? 'page' : undefined}>
            <Icon name={view} />
            {TITLES[view]}
            {view === 'conflicts' && open > 0 && <span class="count">{open}<span class="unseen"> unresolved</span></span>}
          </a>
        ))}
      </div>
      <div class="rail-foot">
        <LineState />
        <FieldChoice />
      </div>
    </nav>
  );
}

function Mark(): JSX.Element {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="9" fill="var(--accent)" />
      <g fill="none" stroke="var(--accent-ink)" stroke-width="2" stroke-linecap="round"><path d="M5 10h22M5 22h22" opacity=".4" /><path d="M10 10l12 12" /></g>
      <circle cx="10" cy="10" r="3.400" fill="var(--accent-ink)" /><circle cx="22" cy="22" r="3.400" fill="var(--accent-ink)" />
    </svg>
  );
}

const STATE_WORDS = { live: 'Live', connecting: 'Connecting…', broken: 'Reconnecting' } as const;

function LineState(): JSX.Element {
  const { state } = line.value;
  return (
    <span class="line-state" role="status" data-state={state}>
      <span class={`dot dot-${state}`} aria-hidden="true" />
      {STATE_WORDS[state]}
    </span>
  );
}

function FieldChoice(): JSX.Element {
  const [names, setNames] = useState<string[]>([]);
  useEffect(() => {
    fields().then(setNames).catch(() => undefined);
  }, []);
  const here = fieldName ?? status.value?.name ?? '';
  if (names.length < 2) return <span>Field <bdi>{here}</bdi></span>;
  const change = (name: string): void => {
    const url = new URL(location.href);
    url.searchParams.set('field', name);
    url.hash = '';
    location.href = url.href;
  };
  return <Select label="Field" value={here} options={names.map((name) => [name, `Field ${name}`] as const)} onChange={change} />;
}

function Head({ title }: { title: string }): JSX.Element {
  const now = status.value;
  const recorded = Object.entries(now?.units ?? {}).reduce((sum, [key, value]) => (key === 'draft' ? sum : sum + value), 0);
  const [, second] = useState(0);
  const { state, retryAt } = line.value;
  useEffect(() => {
    if (state !== 'broken') return;
    const timer = setInterval(() => second((old) => old + 1), 500);
    return () => clearInterval(timer);
  }, [state]);
  const wait = retryAt ? Math.max(0, Math.ceil((retryAt - Date.now()) / 1_000)) : 0;
  return (
    <header class="head">
      <h1>{title}</h1>
      <span class={`dot dot-${state} narrow-only`} title={STATE_WORDS[state]} aria-hidden="true" />
      <div class="head-facts">
        {state === 'broken' ? (
          <span class="line-state" role="alert">
            <span class="dot dot-broken" aria-hidden="true" />
            <span class="opt">{problem.value ?? 'The line broke.'}</span> Trying again {wait > 0 ? `in ${wait} s` : 'now'}
            <button type="button" class="link" onClick={() => void theLine.connect()}>now</button>
          </span>
        ) : now ? (
          <>
            <span title="The Field's own clock">epoch <b>{count(now.epoch)}</b></span>
            <span class="opt"><b>{count(recorded)}</b> {recorded === 1 ? 'unit' : 'units'}</span>
            <span class="opt"><b>{count(now.agents_active)}</b> {now.agents_active === 1 ? 'agent' : 'agents'} here</span>
          </>
        ) : null}
      </div>
      <div class="head-tools">
        <button type="button" class="button wide-only" onClick={() => { composing.value = { about: null }; }}><Icon name="plus" size={15} /> Record</button>
        <button type="button" class="button button-icon" aria-label="Keyboard and help" title="Help (?)" onClick={() => { helping.value = true; }}><Icon name="help" /></button>
        <ThemeSwitch />
        <Me />
      </div>
    </header>
  );
}

function ThemeSwitch(): JSX.Element {
  const next = { system: dark.value ? 'light' : 'dark', light: 'dark', dark: 'light' } as const;
  const to = next[choice.value];
  return (
    <button
      type="button"
      class="button button-icon"
      aria-label={`Switch to ${to} colours`}
      title={choice.value === 'system' ? 'As the system has it. Click to change.' : `Switch to ${to}`}
      onClick={() => { choice.value = to; }}
    >
      <Icon name={dark.value ? 'moon' : 'sun'} />
    </button>
  );
}

function Me(): JSX.Element {
  const name = person.value;
  const open = (): void => {
    asking.value = () => undefined;
  };
  return name ? (
    <button type="button" class="me" onClick={open} aria-label={`You are ${name}. Change`}><Avatar name={name} size={24} /><bdi class="wide-only">{name}</bdi></button>
  ) : (
    <button type="button" class="me me-none" onClick={open}>Take part</button>
  );
}

function Help(): JSX.Element {
  const keys: [string, string][] = [
    ['1 … 6', 'the six views'],
    ['/', 'search or filter'],
    ['↑ ↓ or j k', 'from row to row'],
    ['Enter', 'open what has the focus'],
    ['Esc', 'close the panel'],
    ['Space', 'pause Live; play or stop a replay'],
    ['+ − 0', 'in a graph: closer, further away, all of it; Home and End go to its ends, Shift and arrows move it'],
    ['r', 'record something'],
    ['?', 'this'],
  ];
  return (
    <Dialog title="How to read this page" onClose={() => { helping.value = false; }}>
      <p>What agents say is set in serif; what the hub says is in sans. Vermilion means a contradiction, amber that a person is asked for. The number beside each time is the epoch, the Field's own clock.</p>
      <p>Watching changes nothing in the Field: no epoch passes by it. What you do here is done under your name, as an agent with the role <code>human_operator</code>, and stands in the log like everything else.</p>
      <dl class="facts">
        {keys.map(([key, word]) => <><dt><kbd>{key}</kbd></dt><dd>{word}</dd></>)}
      </dl>
    </Dialog>
  );
}
