/** Who is here, and what each would be brought. */

import type { JSX } from 'preact';
import { lazy, Suspense } from 'preact/compat';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { agents, refreshAgents } from '../hub/field';
import { get } from '../hub/http';
import type { Agent, Unit } from '../hub/types';
import { Avatar, Empty, Epoch, Line, Problem, Select, UnitLink } from '../parts/bits';
import { Icon, TypeMark } from '../parts/icons';
import { useAsked } from '../parts/use';
import { address, go, route } from '../route';
import { ago, fullTime } from '../words/figures';
import { shown } from '../words/text';

const Inspector = lazy(() => import('./Inspector'));

/** Cards drawn at once; more are reached by the filter. */
const CARDS_MAX = 240;

export function presence(agent: Agent): { word: string; dot: string } {
  if (agent.status === 'failed') return { word: 'Lost', dot: 'dot dot-broken' };
  if (agent.status === 'offline') return { word: 'Left', dot: 'dot' };
  return agent.connected ? { word: 'Connected', dot: 'dot dot-live' } : { word: 'By requests', dot: 'dot dot-connecting' };
}

export function Agents(): JSX.Element {
  const [id] = route.value.path;
  const inspecting = route.value.query.get('inspect') !== null;
  useEffect(() => {
    refreshAgents();
    const timer = setInterval(refreshAgents, 10_000);
    return () => clearInterval(timer);
  }, []);
  if (inspecting) return <Suspense fallback={<div class="view" />}><Inspector /></Suspense>;
  return id ? <One id={id} /> : <All />;
}

function All(): JSX.Element {
  const [text, setText] = useState('');
  const [who, setWho] = useState('');
  const found = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    const rank = (agent: Agent): number => (agent.status === 'failed' ? 1 : agent.status === 'offline' ? 2 : 0);
    return agents.value
      .filter((agent) => !wanted || [agent.id, agent.role, ...agent.interests].some((one) => one.toLowerCase().includes(wanted)))
      .filter((agent) => !who || (who === 'here' ? rank(agent) === 0 : rank(agent) > 0))
      .sort((a, b) => rank(a) - rank(b) || Number(b.connected) - Number(a.connected) || (b.last_seen ?? '').localeCompare(a.last_seen ?? ''));
  }, [agents.value, text, who]);
  return (
    <div class="view">
      <div class="bar" role="search">
        <div class="grow"><Icon name="search" size={16} /><input class="input" data-search type="search" placeholder="Filter by name, role or interest" aria-label="Filter agents" value={text} onInput={(event) => setText(event.currentTarget.value)} /></div>
        <Select label="Which agents" value={who} options={[['', 'All'], ['here', 'Here'], ['gone', 'Gone']]} onChange={setWho} />
        <a class="button" href={address('agents', [], { inspect: '1' })}><Icon name="search" size={15} /> Attune inspector</a>
      </div>
      {found.length === 0 ? <Empty title={text || who ? 'No agent matches' : 'Nobody has registered yet'} /> : (
        <div class="view-scroll" tabIndex={0} role="region" aria-label="Agents">
          <div class="agents-grid">
            {found.slice(0, CARDS_MAX).map((agent) => <Card key={agent.id} agent={agent} />)}
          </div>
          {found.length > CARDS_MAX && <div class="list-foot">{found.length - CARDS_MAX} more; the filter reaches them</div>}
        </div>
      )}
    </div>
  );
}

function Presence({ agent }: { agent: Agent }): JSX.Element {
  const { word, dot } = presence(agent);
  return <span class="presence"><span class={dot} aria-hidden="true" />{word}</span>;
}

function Card({ agent }: { agent: Agent }): JSX.Element {
  return (
    <a class="agent-card" href={address('agents', [agent.id])}>
      <div class="agent-card-top"><Avatar name={agent.id} size={34} /><div><b><bdi>{shown(agent.id)}</bdi></b><span><bdi>{shown(agent.role)}</bdi></span></div><Presence agent={agent} /></div>
      {agent.interests.length > 0 && <div class="tags">{agent.interests.slice(0, 5).map((one) => <span class="tag" key={one}><bdi>{shown(one)}</bdi></span>)}</div>}
      <span class="muted">{agent.status !== 'failed' && agent.status !== 'offline' && agent.status !== 'idle' ? `${agent.status}, ` : ''}seen {ago(agent.last_seen)}</span>
    </a>
  );
}

function One({ id }: { id: string }): JSX.Element {
  const agent = agents.value.find((one) => one.id === id);
  const recorded = useAsked<{ units: Unit[] }>((signal) => get(`units?${new URLSearchParams({ agent: id, order: 'newest', limit: '40' })}`, signal), [id, agent?.last_seen]);
  return (
    <div class="view view-scroll" tabIndex={0} role="region" aria-label={`Agent ${id}`}>
      <div class="stage">
        <div class="stage-head">
          <a class="button button-icon" aria-label="All agents" href={address('agents')}><Icon name="back" /></a>
          <Avatar name={id} size={36} />
          <h2><bdi>{shown(id)}</bdi></h2>
          {agent && <Presence agent={agent} />}
        </div>
        {agent ? (
          <dl class="facts">
            <dt>Role</dt><dd><bdi>{shown(agent.role)}</bdi></dd>
            <dt>Status</dt><dd>{agent.status}</dd>
            <dt>Interests</dt><dd>{agent.interests.length > 0 ? <span class="tags">{agent.interests.map((one) => <span class="tag" key={one}><bdi>{shown(one)}</bdi></span>)}</span> : 'none'}</dd>
            <dt>Last seen</dt><dd>{agent.last_seen ? `${fullTime(agent.last_seen)} (${ago(agent.last_seen)})` : 'not since the hub started'}</dd>
            <dt>Registered</dt><dd><Epoch epoch={agent.registered_epoch} /></dd>
          </dl>
        ) : <p class="muted">Nobody of this name is registered here.</p>}
        <div class="panel-actions">
          <a class="button" href={address('agents', [], { inspect: id })}><Icon name="search" size={15} /> What would it be brought?</a>
          <button type="button" class="button" onClick={() => go(address('live', [], { agent: id }))}><Icon name="live" size={15} /> Its doings, live</button>
          <a class="button" href={address('memory', [], { agent: id })}><Icon name="memory" size={15} /> All it recorded</a>
        </div>
        <section>
          <h2>Recorded lately</h2>
          {recorded.error && <Problem text={recorded.error} retry={recorded.again} />}
          <ul class="ties">
            {recorded.value?.units.map((it) => (
              <li key={it.id} class="recent"><TypeMark type={it.type} /><div class="tie"><UnitLink id={it.id} /><Line text={it.content} most={200} /></div></li>
            ))}
          </ul>
          {recorded.value?.units.length === 0 && <p class="muted">Nothing yet.</p>}
        </section>
      </div>
    </div>
  );
}
