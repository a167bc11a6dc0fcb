/** What an ATTUNE would bring, and why: the Field's own scores taken apart. A look, so it leaves no trace. */

import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { agents } from '../hub/field';
import { inWords, look } from '../hub/http';
import { type Attuned, MEMORY_TYPES, type MemoryType, type Scored } from '../hub/types';
import { AgentLink, ConflictLink, Epoch, Problem, Said, Empty, StatusMark, UnitLink } from '../parts/bits';
import { Icon, TypeMark } from '../parts/icons';
import { address, route } from '../route';
import { dark } from '../theme';
import { count } from '../words/figures';
import { TYPE_WORDS } from '../words/names';
import { shown } from '../words/text';

/** In the order in which they are stacked; colours that keep apart in both themes. */
const FACTORS: Record<string, { word: string; light: string; dark: string }> = {
  semantic: { word: 'meaning', light: '#3b4fc4', dark: '#9aa8ff' },
  lexical: { word: 'words', light: '#0f7480', dark: '#5cc7d6' },
  role: { word: 'role', light: '#8a3f7c', dark: '#e79bd8' },
  task: { word: 'task', light: '#8f5a00', dark: '#e8b45a' },
  relations: { word: 'relations', light: '#466a1f', dark: '#a9cf73' },
  type: { word: 'type', light: '#5d6273', dark: '#a9abbd' },
  recency: { word: 'recency', light: '#1d7a53', dark: '#5fcf9f' },
  diversity: { word: 'diversity', light: '#b8321a', dark: '#ff8a70' },
};

interface Form {
  eyes: string;
  role: string;
  interests: string;
  hint: string;
  units: string;
  tokens: string;
  task: string;
  type: string;
  recency: string;
  own: boolean;
}

export default function Inspector(): JSX.Element {
  const asked = route.value.query.get('inspect') ?? '';
  const known = agents.value.find((one) => one.id === asked);
  const [form, setForm] = useState<Form>({
    eyes: known?.id ?? (asked === '1' ? '' : asked), role: known?.role ?? '', interests: '', hint: route.value.query.get('hint') ?? '', units: '10', tokens: '', task: '', type: '', recency: '', own: false,
  });
  const [answer, setAnswer] = useState<Attuned | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const set = (change: Partial<Form>): void => setForm((old) => ({ ...old, ...change }));
  const eyes = agents.value.find((one) => one.id === form.eyes);

  const inspect = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    const interests = form.interests.split(',').map((one) => one.trim()).filter(Boolean);
    const payload = {
      scope: {
        role: form.role || eyes?.role || 'observer',
        max_units: Number(form.units) || 10,
        ...(form.tokens ? { max_tokens: Number(form.tokens) } : {}),
        ...(interests.length > 0 ? { interests } : {}),
        ...(form.task ? { active_task_id: form.task } : {}),
        ...(form.type ? { types: [form.type as MemoryType] } : {}),
        ...(form.recency ? { recency_weight: Number(form.recency) } : {}),
        ...(form.own ? { include_own: true } : {}),
      },
      ...(form.hint.trim() ? { context_hint: form.hint } : {}),
      explain: true,
    };
    try {
      setAnswer(await look<Attuned>('attune', payload, form.eyes || undefined));
    } catch (failed) {
      setError(inWords(failed));
    }
    setBusy(false);
  };

  return (
    <div class="view">
      <div class="inspect">
        <form class="inspect-form" onSubmit={(event) => void inspect(event)} aria-label="Attune inspector">
          <div class="stage-head"><a class="button button-icon" aria-label="All agents" href={address('agents')}><Icon name="back" /></a><h2>Attune inspector</h2></div>
          <p class="muted">What would the Field bring, and why? Looking takes no epoch, is not audited, and shows no drafts, whoever's eyes you borrow.</p>
          <label class="field"><span>Through the eyes of</span>
            <span class="select"><select name="eyes" value={form.eyes} onChange={(event) => { const one = agents.value.find((agent) => agent.id === event.currentTarget.value); set({ eyes: event.currentTarget.value, role: one?.role ?? form.role }); }}>
              <option value="">nobody in particular</option>
              {agents.value.slice(0, 500).map((one) => <option key={one.id} value={one.id}>{shown(one.id)}</option>)}
            </select></span>
          </label>
          {eyes && eyes.interests.length > 0 && !form.interests && <p class="muted">Registered interests count: {eyes.interests.map(shown).join(', ')}</p>}
          <label class="field"><span>Role</span><input class="input" name="role" value={form.role} placeholder="strategist" onInput={(event) => set({ role: event.currentTarget.value })} /></label>
          <label class="field"><span>What it is about to do</span><textarea class="input" name="hint" dir="auto" value={form.hint} placeholder="About to draft the positioning section" onInput={(event) => set({ hint: event.currentTarget.value })} /></label>
          <div class="pair">
            <label class="field"><span>Units at most</span><input class="input" name="units" type="number" min="1" max="1000" value={form.units} onInput={(event) => set({ units: event.currentTarget.value })} /></label>
            <label class="field"><span>Tokens at most</span><input class="input" name="tokens" type="number" min="1" placeholder="no budget" value={form.tokens} onInput={(event) => set({ tokens: event.currentTarget.value })} /></label>
          </div>
          <details>
            <summary>More of the scope</summary>
            <div class="field">
              <label class="field"><span>Interests, instead of the registered ones</span><input class="input" value={form.interests} placeholder="market growth, pricing" onInput={(event) => set({ interests: event.currentTarget.value })} /></label>
              <label class="field"><span>Active task</span><input class="input" value={form.task} onInput={(event) => set({ task: event.currentTarget.value })} /></label>
              <label class="field"><span>Only units of type</span><span class="select"><select value={form.type} onChange={(event) => set({ type: event.currentTarget.value })}><option value="">any</option>{MEMORY_TYPES.map((one) => <option key={one} value={one}>{TYPE_WORDS[one]}</option>)}</select></span></label>
              <label class="field"><span>Weight of recency, 0 to 1</span><input class="input" type="number" min="0" max="1" step="0.05" placeholder="as it comes" value={form.recency} onInput={(event) => set({ recency: event.currentTarget.value })} /></label>
              <label><input type="checkbox" checked={form.own} onChange={(event) => set({ own: event.currentTarget.checked })} /> its own units too</label>
            </div>
          </details>
          <button type="submit" class="button button-main" disabled={busy}>{busy ? 'Looking…' : 'Look'}</button>
        </form>
        <section class="inspect-out" aria-label="What it would be brought" aria-busy={busy} tabIndex={0}>
          {error && <Problem text={error} />}
          {answer ? <Brought answer={answer} /> : !error && <Empty title="Say who asks and what for"><p>No query: only who needs something, and what they are about to do.</p></Empty>}
        </section>
      </div>
    </div>
  );
}

function Brought({ answer }: { answer: Attuned }): JSX.Element {
  const { units_returned, units_available, tokens_used, tokens_budget } = answer.context_budget;
  return (
    <>
      <div class="budget">
        <div class="budget-words" role="status">
          <span><b>{count(units_returned)}</b> of {count(units_available)} units that could be brought</span>
          {tokens_budget !== null && <span><b>{count(tokens_used ?? 0)}</b> of {count(tokens_budget)} tokens</span>}
          {answer.conflicts.length > 0 && <span>{answer.conflicts.length === 1 ? 'An open conflict comes' : `${answer.conflicts.length} open conflicts come`} along: {answer.conflicts.slice(0, 6).map((one) => <><ConflictLink id={one.id} /> </>)}</span>}
        </div>
        {tokens_budget !== null && <div class="budget-bar" aria-hidden="true"><span style={{ width: `${Math.min(100, ((tokens_used ?? 0) / tokens_budget) * 100)}%` }} /></div>}
        {answer.warning && <Problem text={answer.warning.message} />}
      </div>
      {answer.record.map((one, at) => <Hit key={one.memory_unit.id} hit={one} rank={at + 1} />)}
      {answer.record.length === 0 && <Empty title="Nothing would be brought" />}
    </>
  );
}

function Hit({ hit, rank }: { hit: Scored; rank: number }): JSX.Element {
  const it = hit.memory_unit;
  return (
    <article class="hit" aria-label={`${rank}. ${it.id}`}>
      <div class="hit-rank"><b>{hit.relevance_score.toFixed(3)}</b><span>no. {rank}</span></div>
      <div class="hit-body">
        <div class="hit-meta"><UnitLink id={it.id} /><TypeMark type={it.type} /><StatusMark status={it.status} /><AgentLink id={it.source.agent_id} /><Epoch epoch={it.epoch} timestamp={it.source.timestamp} />{hit.format === 'summary' && <span class="pill">summary, to fit the budget</span>}</div>
        <Said text={it.content} most={500} />
        <p class="hit-why"><bdi>{shown(hit.relevance_reason)}</bdi></p>
        {hit.factors && <Factors factors={hit.factors} />}
      </div>
    </article>
  );
}

function Factors({ factors }: { factors: Record<string, { value: number; contribution: number }> }): JSX.Element {
  const listed = Object.entries(FACTORS).flatMap(([key, look]) => (factors[key] ? [{ key, ...look, ...factors[key] }] : []));
  const colour = (one: { light: string; dark: string }): string => (dark.value ? one.dark : one.light);
  return (
    <div class="factors">
      <div class="factor-stack" aria-hidden="true">{listed.filter((one) => one.contribution > 0).map((one) => <span key={one.key} style={{ width: `${one.contribution * 100}%`, background: colour(one) }} />)}</div>
      <details>
        <summary>What the score is made of</summary>
        <table class="factor-table">
          <thead><tr><th scope="col">Factor</th><td>value</td><td>adds</td></tr></thead>
          <tbody>{listed.map((one) => <tr key={one.key}><th scope="row"><span class="swatch" style={{ background: colour(one) }} />{one.word}</th><td>{one.value.toFixed(3)}</td><td>{one.contribution.toFixed(3)}</td></tr>)}</tbody>
        </table>
      </details>
    </div>
  );
}
