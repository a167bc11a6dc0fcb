/** Everything about one unit: what, why, how sure, what it stands to, and what happened to it. */

import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ensure, fetchUnit, hear, unit, unitsTick } from '../hub/field';
import { inWords, look } from '../hub/http';
import { act, person } from '../hub/person';
import type { RelationType, Replayed, UnitInFull } from '../hub/types';
import { address, go, withQuery } from '../route';
import { fullTime } from '../words/figures';
import { AgentLink, Confidence, ConflictLink, Dialog, Epoch, Line, Problem, Said, StatusMark, UnitLink } from './bits';
import { composing } from './Compose';
import { Icon, TypeMark } from './icons';
import { RelationMark } from './Relation';
import { Timeline } from './Timeline';
import { useAsked } from './use';
import { shown } from '../words/text';

/** Relations shown before the rest is asked for. */
const TIES_FIRST = 12;

export function UnitPanel({ id }: { id: string }): JSX.Element {
  unitsTick.value;
  const live = unit(id);
  // What newly names this unit changes what stands here, though not the unit.
  const [named, setNamed] = useState(0);
  useEffect(() => hear((batch) => {
    const names = batch.some((one) => one.memory_unit_id === id || one.memory_unit?.relations.some((relation) => relation.target_id === id));
    if (names) setNamed((old) => old + 1);
  }), [id]);
  const asked = useAsked<UnitInFull>(() => fetchUnit(id), [id, live?.status, named]);
  const history = useAsked<Replayed>(
    (signal) => look('replay', { target_type: 'memory_unit', target_id: id, depth: 'detailed' }, undefined, signal),
    [id, live?.status, named],
  );
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    box.current?.focus({ preventScroll: true });
  }, [id]);
  const found = asked.value;
  return (
    <aside class="panel" aria-label={`Unit ${id}`} ref={box} tabIndex={-1}>
      <div class="panel-head">
        <h2 class="id">{id}</h2>
        {found && <TypeMark type={found.type} />}
        <button type="button" class="button button-icon" aria-label="Close the panel" onClick={() => go(withQuery({ unit: null }))}><Icon name="close" /></button>
      </div>
      <div class="panel-body">
        {asked.error && <Problem text={asked.error} retry={asked.again} />}
        {found && <Told unit={found} />}
        {found && <Ties unit={found} />}
        {found && (
          <section>
            <h3>What happened</h3>
            {history.error && <Problem text={history.error} />}
            {history.value && <Timeline events={history.value.timeline.slice(-60)} label="History of this unit" />}
          </section>
        )}
      </div>
    </aside>
  );
}

function Told({ unit: it }: { unit: UnitInFull }): JSX.Element {
  const { confidence, intent, source } = it;
  const [retracting, setRetracting] = useState(false);
  return (
    <>
      <div class="panel-meta">
        <StatusMark status={it.status} />
        {it.archived && <StatusMark status="archived" />}
        <AgentLink id={source.agent_id} />
        <Epoch epoch={it.epoch} timestamp={source.timestamp} />
      </div>
      <Said text={it.content} />
      <section>
        <h3>Why it was recorded</h3>
        <Said text={intent.purpose} small />
        {intent.question && <Said text={intent.question} small />}
      </section>
      {confidence && (
        <section>
          <h3>How sure</h3>
          <Confidence score={confidence.score} wide />
          <Said text={confidence.reason} small />
          {(confidence.evidence?.length ?? 0) > 0 && <Bullets title="Evidence" items={confidence.evidence ?? []} />}
          {(confidence.assumptions?.length ?? 0) > 0 && <Bullets title="Assumes" items={confidence.assumptions ?? []} />}
        </section>
      )}
      <dl class="facts">
        <dt>Role</dt><dd><bdi>{shown(source.agent_role)}</bdi></dd>
        {intent.task_id && <><dt>Task</dt><dd><a class="id" href={address('replay', ['task', intent.task_id])}><bdi>{shown(intent.task_id)}</bdi></a></dd></>}
        {source.session_id && <><dt>Session</dt><dd><a class="id" href={address('replay', ['session', source.session_id])}><bdi>{shown(source.session_id)}</bdi></a></dd></>}
        <dt>Recorded</dt><dd>{fullTime(source.timestamp)}</dd>
        {it.conflicts.length > 0 && <><dt>Conflicts</dt><dd>{it.conflicts.map((one) => <><ConflictLink id={one} /> </>)}</dd></>}
      </dl>
      <div class="panel-actions">
        <a class="button" href={address('replay', ['memory_unit', it.id])}><Icon name="replay" size={15} /> Replay</a>
        <a class="button" href={address('memory', [], { view: 'graph', around: it.id, unit: it.id })}><Icon name="graph" size={15} /> Graph</a>
        <button type="button" class="button" onClick={() => { composing.value = { about: it }; }}><Icon name="plus" size={15} /> {it.type === 'question' ? 'Answer' : 'Add to it'}</button>
        {person.value === source.agent_id && (it.status === 'active' || it.status === 'contested') && (
          <button type="button" class="button" onClick={() => setRetracting(true)}>Take back</button>
        )}
      </div>
      {retracting && <Retract id={it.id} onClose={() => setRetracting(false)} />}
    </>
  );
}

function Bullets({ title, items }: { title: string; items: string[] }): JSX.Element {
  return (
    <div>
      <h3>{title}</h3>
      <ul class="bullets">{items.map((item, at) => <li key={at}><Said text={item} most={400} small /></li>)}</ul>
    </div>
  );
}

function Ties({ unit: it }: { unit: UnitInFull }): JSX.Element | null {
  const [all, setAll] = useState(false);
  const ties: { type: RelationType; id: string; inward: boolean }[] = [
    ...it.relations.map((one) => ({ type: one.type, id: one.target_id, inward: false })),
    ...it.inbound_relations.map((one) => ({ type: one.type, id: one.source_id, inward: true })),
  ];
  const listed = all ? ties : ties.slice(0, TIES_FIRST);
  useEffect(() => {
    void ensure(listed.slice(0, 40).map((one) => one.id)).then(() => {
      unitsTick.value += 1;
    });
  }, [it.id, all]);
  if (ties.length === 0) return null;
  unitsTick.value;
  return (
    <section>
      <h3>What it stands to</h3>
      <ul class="ties">
        {listed.map((one, at) => (
          <li key={at}>
            <RelationMark type={one.type} inward={one.inward} />
            <div class="tie"><UnitLink id={one.id} /><Line text={unit(one.id)?.content ?? ''} most={120} /></div>
          </li>
        ))}
      </ul>
      {listed.length < ties.length && <button type="button" class="link" onClick={() => setAll(true)}>{ties.length - listed.length} more</button>}
    </section>
  );
}

function Retract({ id, onClose }: { id: string; onClose: () => void }): JSX.Element {
  const [reason, setReason] = useState('');
  const [error, setError] = useState<string | null>(null);
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await act('RETRACT', { memory_unit_id: id, reason });
      onClose();
    } catch (failed) {
      setError(inWords(failed));
    }
  };
  return (
    <Dialog title={`Take ${id} back`} onClose={onClose}>
      <form class="field" onSubmit={(event) => void send(event)}>
        <p class="muted">It stays in the log and in replays, and is brought to nobody any more. This is final.</p>
        <label class="field"><span>Reason</span><input class="input" value={reason} required onInput={(event) => setReason(event.currentTarget.value)} /></label>
        {error && <Problem text={error} />}
        <div class="actions"><button type="submit" class="button button-danger">Take back</button></div>
      </form>
    </Dialog>
  );
}
