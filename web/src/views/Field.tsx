/** How the hub does: rates, latencies, sizes; what the Field can do; looking after old memory. */

import type { JSX } from 'preact';
import { capabilities, rates, status } from '../hub/field';
import { UNIT_STATUSES } from '../hub/types';
import { Chart, type Series } from '../parts/Chart';
import { StatusMark } from '../parts/bits';
import { address } from '../route';
import { BYTE_STEPS, bytes, compact, count, milliseconds, span } from '../words/figures';
import { Compacting } from './Compacting';

const BLUE = { light: '#3b4fc4', dark: '#9aa8ff' };
const RED = { light: '#c2381f', dark: '#ff8a70' };
const TEAL = { light: '#0f7480', dark: '#5cc7d6' };
const GREY = { light: '#656877', dark: '#a9abbd' };

export default function Field(): JSX.Element {
  const kept = rates.value;
  const times = kept.map((one) => one.at / 1_000);
  const last = kept.at(-1);
  const series = (word: string, colours: { light: string; dark: string }, of: (one: (typeof kept)[number]) => number | null, dashed = false): Series =>
    ({ word, ...colours, values: kept.map(of), dashed });
  return (
    <div class="view view-scroll" tabIndex={0} role="region" aria-label="The Field in figures">
      <div class="charts">
        <Chart title="Operations a second" now={last ? compact(last.operations) : '–'} times={times} format={compact} least={1} series={[series('answered', BLUE, (one) => one.operations), series('refused', RED, (one) => one.refusals, true)]} />
        <Chart title="Deliveries a second" now={last ? compact(last.deliveries) : '–'} times={times} format={compact} least={1} series={[series('notifications sent', TEAL, (one) => one.deliveries)]} />
        <Chart title="Latency, durable" now={last?.p99 != null ? milliseconds(last.p99) : '–'} times={times} format={milliseconds} least={0.001} series={[series('half are faster than', BLUE, (one) => one.p50), series('99 of 100 are faster than', RED, (one) => one.p99, true)]} />
        <Chart title="Open connections" now={last ? count(last.connections) : '–'} times={times} format={compact} least={4} series={[series('all doors', GREY, (one) => one.connections)]} />
        <Chart title="Log on disk" now={last ? bytes(last.logBytes) : '–'} times={times} format={bytes} steps={BYTE_STEPS} least={1024} series={[series('this Field', BLUE, (one) => one.logBytes)]} />
        {last?.memoryBytes != null && <Chart title="Memory of the hub" now={bytes(last.memoryBytes)} times={times} format={bytes} steps={BYTE_STEPS} least={1024} series={[series('the whole process', TEAL, (one) => one.memoryBytes)]} />}
      </div>
      <div class="blocks">
        <Holds />
        <Can />
        <Bounds />
        {capabilities.value?.supported_operations.includes('COMPACT') && <Compacting />}
      </div>
    </div>
  );
}

const SHARE: Record<string, string> = {
  active: 'var(--good)', contested: 'var(--clash)', superseded: 'var(--ink-3)', retracted: 'var(--line-2)', pending_enrichment: 'var(--warn)', draft: 'var(--accent)',
};

function Holds(): JSX.Element | null {
  const now = status.value;
  if (!now) return null;
  const total = Object.values(now.units).reduce((sum, one) => sum + one, 0);
  return (
    <section class="block" aria-label="What it holds">
      <h2>Field <bdi>{now.name}</bdi></h2>
      <div class="shares" aria-hidden="true">{UNIT_STATUSES.filter((one) => now.units[one] > 0).map((one) => <span key={one} style={{ width: `${(now.units[one] / total) * 100}%`, background: SHARE[one] }} />)}</div>
      <dl class="facts">
        {UNIT_STATUSES.map((one) => <><dt><StatusMark status={one} /></dt><dd>{count(now.units[one] ?? 0)}</dd></>)}
        <dt><StatusMark status="archived" /><span class="muted beside">of these, put away</span></dt><dd>{now.units_archived > 0 ? <a class="link" href={address('memory', [], { status: 'archived' })}>{count(now.units_archived)}</a> : 0}</dd>
        <dt>Agents, here of all</dt><dd>{count(now.agents_active)} of {count(now.agents)}</dd>
        <dt>Conflicts, unresolved of all</dt><dd>{count(now.conflicts_unresolved)} of {count(now.conflicts)}</dd>
        <dt>Subscriptions</dt><dd>{count(now.subscriptions)}</dd>
        <dt>Log entries</dt><dd>{count(now.log_entries)}</dd>
        <dt>Epoch</dt><dd>{count(now.epoch)}</dd>
        <dt>Up for</dt><dd>{span(now.uptime_ms)}</dd>
        <dt>Version</dt><dd>{now.version}</dd>
      </dl>
    </section>
  );
}

function Can(): JSX.Element | null {
  const can = capabilities.value;
  if (!can) return null;
  return (
    <section class="block" aria-label="What it can do">
      <h2>What it can do</h2>
      <dl class="facts">
        <dt>Akashik Protocol</dt><dd>{can.protocol_version}</dd>
        <dt>Conformance level</dt><dd>{can.conformance_level}</dd>
        <dt>Durable</dt><dd>{can.persistence ? 'yes' : 'no'}</dd>
        <dt>Meaning</dt><dd>{can.embedding ? `${can.embedding.name}, ${can.embedding.dimensions} dimensions` : 'by words alone'}</dd>
      </dl>
      <h3>Operations</h3><div class="ops">{can.supported_operations.map((one) => <span class="tag" key={one}>{one}</span>)}</div>
      <h3>Strategies</h3><div class="ops">{can.conflict_strategies.map((one) => <span class="tag" key={one}>{one}</span>)}</div>
      <h3>Extensions</h3><div class="ops">{can.extensions.map((one) => <span class="tag" key={one}>{one}</span>)}</div>
    </section>
  );
}

function Bounds(): JSX.Element | null {
  const can = capabilities.value;
  if (!can) return null;
  return (
    <section class="block" aria-label="Limits">
      <h2>Limits that clients meet</h2>
      <dl class="facts">{Object.entries(can.limits).map(([key, value]) => <><dt>{key.replaceAll('_', ' ')}</dt><dd>{key.endsWith('bytes') ? bytes(value) : count(value)}</dd></>)}</dl>
    </section>
  );
}
