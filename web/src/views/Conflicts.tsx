/** Where memory contradicts itself: both sides next to each other, and what a person can do about it. */

import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { capabilities, conflicts, conflictsLoaded, ensure, fetchUnit, refreshConflicts, unit, unitsTick } from '../hub/field';
import { inWords, look } from '../hub/http';
import { act, person } from '../hub/person';
import type { Conflict, Replayed, UnitInFull } from '../hub/types';
import { AgentLink, Confidence, ConflictMark, Empty, Epoch, Line, Problem, Said, StatusMark, UnitLink } from '../parts/bits';
import { Icon, TypeMark } from '../parts/icons';
import { Timeline } from '../parts/Timeline';
import { useAsked } from '../parts/use';
import { address, go, route } from '../route';
import { clash, type Piece, sidesOf } from '../words/clash';
import { counted } from '../words/figures';
import { STRATEGIES } from '../words/names';
import { foresee } from '../words/foresee';
import { oneLine, shown } from '../words/text';

/** What a decision of this page brought about, by conflict: said until one turns to another. */
interface Decision {
  id: string;
  effects: Merged['side_effects'];
}

export function Conflicts(): JSX.Element {
  const chosen = route.value.path[0] ?? null;
  const [filter, setFilter] = useState<'open' | 'resolved'>('open');
  const [decision, setDecision] = useState<Decision | null>(null);
  const decided = (id: string, effects: Merged['side_effects']): void => {
    setDecision({ id, effects });
    // It stays in view, though it leaves the list of those that are open.
    if (route.value.path[0] !== id) go(address('conflicts', [id]), true);
  };
  const all = conflicts.value;
  const open = all.filter((one) => one.status !== 'resolved').sort((a, b) => Number(b.status === 'escalated') - Number(a.status === 'escalated'));
  const resolved = all.filter((one) => one.status === 'resolved');
  const listed = filter === 'open' ? open : resolved;
  const shownId = chosen ?? (matchMedia('(min-width: 821px)').matches ? (listed[0]?.id ?? null) : null);
  const found = all.find((one) => one.id === shownId) ?? null;
  return (
    <div class="view">
      <div class={`split${chosen ? ' split-chosen' : ''}`}>
        <section class="side" aria-label="Conflicts">
          <div class="bar">
            <div class="tabs" role="group" aria-label="Which conflicts">
              <button type="button" aria-pressed={filter === 'open'} onClick={() => setFilter('open')}>Unresolved {open.length}</button>
              <button type="button" aria-pressed={filter === 'resolved'} onClick={() => setFilter('resolved')}>Resolved {resolved.length}</button>
            </div>
          </div>
          <nav class="side-list" aria-label="List of conflicts">
            {listed.slice(0, 400).map((one) => (
              <a key={one.id} class="side-item" href={address('conflicts', [one.id])} aria-current={one.id === shownId ? 'true' : undefined}>
                <span class="side-top"><ConflictMark status={one.status} /><span class="mono">{one.id}</span></span>
                <Gist text={one.description} />
              </a>
            ))}
            {listed.length === 0 && conflictsLoaded.value && <Empty title={filter === 'open' ? 'No contradiction stands open' : 'None was resolved yet'} />}
          </nav>
        </section>
        <section class="stage" aria-label="The conflict" tabIndex={0}>
          {found ? <Stage key={found.id} conflict={found} decision={decision?.id === found.id ? decision : null} next={open.find((one) => one.id !== found.id) ?? null} onDecided={decided} />
            : chosen && conflictsLoaded.value ? <Problem text={`There is no conflict ${chosen} here.`} />
            : <Empty title="Nothing contradicts itself here"><p>When an agent records what contradicts a unit that stands, both sides appear here.</p></Empty>}
        </section>
      </div>
    </div>
  );
}

/** What clashes: a line for each side, or the hub's words. */
function Gist({ text }: { text: string }): JSX.Element {
  const sides = sidesOf(text);
  if (!sides) return <p><bdi dir="auto">{oneLine(text, 180)}</bdi></p>;
  return <div class="gist"><Line text={sides[1]} most={140} /><span class="unseen"> against </span><Line text={sides[0]} most={140} /></div>;
}

interface Staged {
  conflict: Conflict;
  decision: Decision | null;
  /** Another one that is open. */
  next: Conflict | null;
  onDecided: (id: string, effects: Merged['side_effects']) => void;
}

function Stage({ conflict, decision, next, onDecided }: Staged): JSX.Element {
  const sides = useAsked<[UnitInFull, UnitInFull]>(
    () => Promise.all([fetchUnit(conflict.unit_a), fetchUnit(conflict.unit_b)]),
    [conflict.id, conflict.status],
  );
  const history = useAsked<Replayed>(
    (signal) => look('replay', { target_type: 'conflict', target_id: conflict.id, depth: 'full_trace' }, undefined, signal),
    [conflict.id, conflict.status, JSON.stringify(conflict.ballots ?? null)],
  );
  unitsTick.value;
  const fetched = sides.value;
  const [a, b] = fetched ?? [null, null];
  const [piecesA, piecesB] = a && b ? clash(a.content, b.content) : [[], []];
  const winner = conflict.resolution?.winner_id ?? null;
  return (
    <>
      <div class="stage-head">
        <a class="button button-icon narrow-back" aria-label="All conflicts" href={address('conflicts')}><Icon name="back" /></a>
        <h2 class="id id-clash">{conflict.id}</h2>
        <ConflictMark status={conflict.status} />
        <span class="muted">{conflict.type}, noticed {conflict.detected_by === 'explicit' ? 'by its author' : `by the hub (${conflict.detected_by})`}</span>
        <a class="button" href={address('replay', ['conflict', conflict.id])}><Icon name="replay" size={15} /> Replay</a>
      </div>
      {sides.error && <Problem text={sides.error} retry={sides.again} />}
      {decision && conflict.status === 'resolved' && <Decided conflict={conflict} effects={decision.effects} next={next} />}
      {conflict.status === 'resolved' && conflict.resolution && (
        <div class="verdict">
          <strong>{winner ? <>{winner} prevails</> : 'A synthesis took the place of both'}, by {STRATEGIES[conflict.resolution.strategy]?.name.toLowerCase() ?? conflict.resolution.strategy}</strong>
          <Said text={conflict.resolution.rationale} small />
          <span class="muted"><AgentLink id={conflict.resolution.resolved_by} /> <Epoch epoch={conflict.resolution.epoch_resolved} /></span>
        </div>
      )}
      {conflict.status === 'escalated' && (
        <div class="verdict verdict-waits">
          <strong>A person has to decide this</strong>
          {conflict.escalation_reason && <Said text={conflict.escalation_reason} small />}
        </div>
      )}
      {a && b && (
        <div class="versus">
          <Side it={a} pieces={piecesA} won={winner === a.id} lost={winner !== null && winner !== a.id} label="The earlier side" />
          <div class="versus-mid" aria-hidden="true"><span><Icon name="conflicts" size={22} /></span></div>
          <Side it={b} pieces={piecesB} won={winner === b.id} lost={winner !== null && winner !== b.id} label="The later side" />
        </div>
      )}
      {a && b && conflict.status !== 'resolved' && <Resolve conflict={conflict} a={a} b={b} onDecided={onDecided} />}
      <section aria-label="What happened">
        <h2>What happened</h2>
        {history.error && <Problem text={history.error} />}
        {history.value && <Timeline events={history.value.timeline} label="History of this conflict" />}
      </section>
    </>
  );
}

/** What came of a decision that was just taken here, before one goes on. */
function Decided({ conflict, effects, next }: { conflict: Conflict; effects: Merged['side_effects']; next: Conflict | null }): JSX.Element {
  const winner = conflict.resolution?.winner_id;
  const losers = effects.superseded_units.join(' and ');
  return (
    <div class="done decided" role="status">
      <p>
        <strong>Your decision stands.</strong>{' '}
        {winner ? <>{winner} is active again{losers && <>, {losers} is superseded</>}.</> : <>{effects.new_unit_id ?? 'A synthesis'} took the place of {losers}.</>}{' '}
        It cannot be undone; whoever sees it otherwise records a unit that contradicts it.
      </p>
      <div class="actions">
        <a class="button" href={address('replay', ['conflict', conflict.id])}>How it came about</a>
        {next && <a class="button button-main" href={address('conflicts', [next.id])}>Next open conflict</a>}
      </div>
    </div>
  );
}

function Side({ it, pieces, won, lost, label }: { it: UnitInFull; pieces: Piece[]; won: boolean; lost: boolean; label: string }): JSX.Element {
  unitsTick.value;
  const live = unit(it.id)?.status ?? it.status;
  const long = it.content.length > 4_000;
  const supporting = it.inbound_relations.filter((one) => one.type === 'supports').length;
  return (
    <article class={`side-card${won ? ' side-won' : ''}${lost ? ' side-lost' : ''}`} aria-label={label}>
      <div class="panel-meta"><UnitLink id={it.id} /><TypeMark type={it.type} /><StatusMark status={live} />{won && <span class="pill pill-resolved">prevails</span>}</div>
      {long ? <Said text={it.content} /> : <div class="said"><bdi dir="auto">{pieces.map((piece, at) => (piece.own ? <mark key={at}>{shown(piece.text)}</mark> : shown(piece.text)))}</bdi></div>}
      <dl class="facts">
        <dt>By</dt><dd><AgentLink id={it.source.agent_id} /> <span class="muted"><bdi>{shown(it.source.agent_role)}</bdi></span></dd>
        <dt>When</dt><dd><Epoch epoch={it.epoch} timestamp={it.source.timestamp} /></dd>
        <dt>Why</dt><dd><bdi dir="auto">{oneLine(it.intent.purpose, 240)}</bdi></dd>
        {it.confidence && <><dt>Sure</dt><dd><Confidence score={it.confidence.score} /> <bdi dir="auto">{oneLine(it.confidence.reason, 240)}</bdi></dd></>}
        <dt>Backed by</dt><dd>{counted(supporting, 'supporting unit', 'supporting units')}, {counted(it.confidence?.evidence?.length ?? 0, 'piece of evidence', 'pieces of evidence')}</dd>
      </dl>
    </article>
  );
}

interface Merged {
  status: 'resolved' | 'escalated' | 'pending_vote';
  side_effects: { superseded_units: string[]; new_unit_id: string | null; notified_agents: string[] };
}

function Resolve({ conflict, a, b, onDecided }: { conflict: Conflict; a: UnitInFull; b: UnitInFull; onDecided: Staged['onDecided'] }): JSX.Element {
  const served = capabilities.value?.conflict_strategies ?? [];
  // A person's own decision ends what was escalated; nothing else does.
  const offered = conflict.status === 'escalated' ? served.filter((one) => one === 'human_escalation') : served;
  const canMerge = capabilities.value?.supported_operations.includes('MERGE') ?? true;
  const [strategy, setStrategy] = useState(conflict.status === 'escalated' ? 'human_escalation' : (served[1] ?? served[0] ?? 'human_escalation'));
  useEffect(() => {
    if (!offered.includes(strategy) && offered[0]) setStrategy(offered[0]);
  }, [offered.join()]);
  const [winner, setWinner] = useState<string | null>(null);
  const [synthesis, setSynthesis] = useState('');
  const [rationale, setRationale] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [done, setDone] = useState<string | null>(null);
  if (!canMerge) return <p class="muted">This Field does not serve MERGE at its level, so conflicts cannot be resolved here.</p>;

  const escalates = strategy === 'human_escalation' && conflict.status !== 'escalated';
  const chooses = strategy === 'vote' || (strategy === 'human_escalation' && !escalates);
  const ready = rationale.trim() !== '' && (!chooses || winner !== null) && (strategy !== 'synthesis' || synthesis.trim() !== '');

  const merge = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    setDone(null);
    try {
      const answer = await act<Merged>('MERGE', {
        conflict_id: conflict.id,
        strategy,
        resolution: { rationale, ...(chooses ? { winner_id: winner } : {}), ...(strategy === 'synthesis' ? { synthesis } : {}) },
      });
      setDone({
        resolved: 'Resolved.',
        escalated: 'Escalated: it waits for a person to decide.',
        pending_vote: 'Your ballot is cast. More are needed.',
      }[answer.status]);
      if (answer.status !== 'pending_vote') setRationale('');
      if (answer.status === 'resolved') onDecided(conflict.id, answer.side_effects);
      refreshConflicts();
      void ensure(answer.side_effects.new_unit_id ? [answer.side_effects.new_unit_id] : []);
    } catch (failed) {
      setError(inWords(failed));
    }
    setBusy(false);
  };
  const quorum = capabilities.value?.limits.vote_quorum ?? 3;
  return (
    <form class="resolve" onSubmit={(event) => void merge(event)} aria-label="Resolve this conflict">
      <h2>{conflict.status === 'escalated' ? 'Decide' : 'Resolve'}</h2>
      {offered.length > 1 && <fieldset class="strategies">
        <legend class="unseen">Strategy</legend>
        {offered.map((one) => (
          <label key={one} class="strategy">
            <input type="radio" name="strategy" value={one} checked={strategy === one} onChange={() => { setStrategy(one); setWinner(null); }} />
            <b>{one === 'human_escalation' && conflict.status !== 'escalated' ? 'Escalate' : (STRATEGIES[one]?.name ?? one)}</b>
            <span>{foresee(one, conflict, a, b) ?? STRATEGIES[one]?.how ?? ''}</span>
          </label>
        ))}
      </fieldset>}
      {strategy === 'vote' && <Ballots conflict={conflict} quorum={quorum} />}
      {chooses && (
        <div class="field"><span>Which side</span>
          <div class="sides" role="group" aria-label="Which side">
            {[a, b].map((it) => (
              <button key={it.id} type="button" class="strategy" aria-pressed={winner === it.id} onClick={() => setWinner(it.id)}>
                <b>{it.id} by <bdi>{oneLine(it.source.agent_id, 40)}</bdi></b>
                <Line text={it.content} most={160} />
              </button>
            ))}
          </div>
        </div>
      )}
      {strategy === 'synthesis' && (
        <label class="field"><span>What holds instead of both</span><textarea class="input" name="synthesis" value={synthesis} required dir="auto" onInput={(event) => setSynthesis(event.currentTarget.value)} /></label>
      )}
      <label class="field"><span>Rationale: why so. It stays in the log.</span><textarea class="input" name="rationale" value={rationale} required dir="auto" onInput={(event) => setRationale(event.currentTarget.value)} /></label>
      {error && <Problem text={error} />}
      {done && <div class="done" role="status">{done}</div>}
      <div class="actions">
        <span class="muted grow">{person.value ? <>As <bdi>{person.value}</bdi></> : 'You will be asked for a name.'}</span>
        <button type="submit" class="button button-main" disabled={busy || !ready}>{escalates ? 'Escalate' : strategy === 'vote' ? 'Cast ballot' : strategy === 'human_escalation' ? 'Decide' : 'Resolve'}</button>
      </div>
    </form>
  );
}

function Ballots({ conflict, quorum }: { conflict: Conflict; quorum: number }): JSX.Element {
  const cast = Array.isArray(conflict.ballots) ? conflict.ballots : [];
  return (
    <div class="field"><span>Ballots: {cast.length} of a quorum of {quorum}</span>
      {cast.length > 0 && <ul class="ties">{cast.map((one) => <li key={one.agent_id}><AgentLink id={one.agent_id} /><UnitLink id={one.winner_id} /></li>)}</ul>}
    </div>
  );
}
