/** What the Field knows: as a list from the newest back, by meaning where something is sought, or as a graph. */

import type { JSX } from 'preact';
import { lazy, Suspense } from 'preact/compat';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { agents, anew, hear, remember, status, unit, unitsTick } from '../hub/field';
import { get, inWords, look } from '../hub/http';
import { regrouped, type Row, rowOf, type Wanted, wants } from '../hub/rows';
import { type Attuned, MEMORY_TYPES, type Unit, UNIT_STATUSES } from '../hub/types';
import { Confidence, Empty, Epoch, Line, AgentLink, Problem, Select, StatusMark } from '../parts/bits';
import { Icon, TypeMark } from '../parts/icons';
import { useAsked, useMedia } from '../parts/use';
import { VirtualList } from '../parts/VirtualList';
import { address, go, openUnit, route, unitAddress, withQuery } from '../route';
import { byCloseness } from '../words/closeness';
import { count, counted } from '../words/figures';
import { STATUS_WORDS, TYPE_WORDS } from '../words/names';

const Loom = lazy(() => import('../graph/LoomView'));

/** Units of the first page, and of each that follows. */
const PAGE = 200;
const PAGE_MORE = 500;
/** Units that a search brings. */
const SOUGHT = 200;

interface Listing {
  rows: Row[];
  more: boolean;
  error: string | null;
  fresh: number;
  load: () => void;
}

interface Page {
  units: Unit[];
  cursor: string | null;
}

/** The list, page by page from the newest back; what is recorded meanwhile comes in front. */
function useListing(wanted: Wanted): Listing {
  const key = JSON.stringify([wanted, anew.value]);
  const [state, setState] = useState<{ key: string; rows: Row[]; cursor: string | null; error: string | null; fresh: number }>(
    { key: '', rows: [], cursor: '', error: null, fresh: 0 },
  );
  const busy = useRef<string | null>(null);

  const load = (): void => {
    const here = state.key === key ? state : null;
    const place = here ? here.cursor : '';
    if (place === null || busy.current === key) return;
    busy.current = key;
    const query = new URLSearchParams({ order: 'newest', limit: String(place ? PAGE_MORE : PAGE) });
    if (place) query.set('before', place);
    for (const [name, value] of Object.entries(wanted)) if (value) query.set(name, value);
    // Archived is no status, though a list is chosen by it like by one.
    if (wanted.status === 'archived') {
      query.delete('status');
      query.set('archived', 'true');
    }
    get<Page>(`units?${query}`)
      .then((page) => {
        remember([...page.units].reverse());
        setState((old) => {
          const rows = old.key === key ? old.rows : [];
          // Pages do not overlap; what came in meanwhile may stand in the one that was under way.
          const known = new Set(rows.slice(-PAGE_MORE).map((row) => row.id));
          const added = page.units.filter((it) => !known.has(it.id)).map(rowOf);
          return { key, rows: [...rows, ...added], cursor: page.cursor, error: null, fresh: old.key === key ? old.fresh : 0 };
        });
      })
      .catch((error: unknown) => setState((old) => ({ ...old, key, error: inWords(error) })))
      .finally(() => {
        busy.current = null;
      });
  };

  useEffect(load, [key]);

  useEffect(() => hear((batch) => {
    const fresh: Row[] = [];
    const changed = new Map<string, Unit>();
    for (const { event, memory_unit_id: id } of batch) {
      const it = id ? unit(id) : undefined;
      if (!it) continue;
      if (event === 'memory.recorded' && wants(wanted, it)) fresh.unshift(rowOf(it));
      changed.set(it.id, it);
    }
    if (changed.size === 0) return;
    setState((old) => {
      if (old.key !== key) return old;
      const known = new Set(old.rows.slice(0, 2_000).map((row) => row.id));
      const added = fresh.filter((row) => !known.has(row.id));
      const rows = added.length > 0 ? [...added, ...old.rows] : old.rows;
      return { ...old, rows: wanted.status ? regrouped(rows, changed, wanted) : rows, fresh: old.fresh + added.length };
    });
  }), [key]);

  const current = state.key === key;
  return {
    rows: current ? state.rows : [], more: !current || state.cursor !== null, error: current ? state.error : null,
    fresh: current ? state.fresh : 0, load,
  };
}

export function Memory(): JSX.Element {
  const query = route.value.query;
  const graph = query.get('view') === 'graph';
  return (
    <div class="view">
      <Bar graph={graph} />
      {graph ? <Graph around={query.get('around')} /> : query.get('q') ? <Sought text={query.get('q') ?? ''} /> : <Listed />}
    </div>
  );
}

function wantedOf(query: URLSearchParams): Wanted {
  const of = (key: string): string => query.get(key) ?? '';
  return { type: of('type'), status: of('status'), agent: of('agent'), task: of('task'), session: of('session') };
}

function Bar({ graph }: { graph: boolean }): JSX.Element {
  const query = route.value.query;
  const wanted = wantedOf(query);
  const [text, setText] = useState(query.get('q') ?? '');
  useEffect(() => setText(query.get('q') ?? ''), [query.get('q')]);
  const set = (change: Record<string, string | null>): void => go(withQuery(change), true);
  const seek = (event: Event): void => {
    event.preventDefault();
    const sought = text.trim();
    // An id is not sought but opened.
    if (/^mem-\d+(\.\d+)?$/.test(sought)) go(withQuery({ unit: sought, q: null }));
    else go(withQuery({ q: sought || null, view: null }), true);
  };
  return (
    <form class="bar" role="search" onSubmit={seek}>
      <div class="tabs" role="group" aria-label="How memory is shown">
        <a href={withQuery({ view: null })} aria-current={graph ? undefined : 'true'}><Icon name="list" size={15} /> List</a>
        <a href={withQuery({ view: 'graph', q: null, around: query.get('around') ?? openUnit.value })} aria-current={graph ? 'true' : undefined}><Icon name="graph" size={15} /> Graph</a>
      </div>
      <div class="grow"><Icon name="search" size={16} /><input class="input" data-search type="search" value={text} placeholder="Search by meaning, or open an id" aria-label="Search memory by meaning" onInput={(event) => { setText(event.currentTarget.value); if (!event.currentTarget.value) set({ q: null }); }} /></div>
      {!graph && (
        <>
          <Select label="Status" value={wanted.status} options={[['', 'Any status'], ...UNIT_STATUSES.filter((one) => one !== 'draft').map((one) => [one, STATUS_WORDS[one]] as const), ['archived', 'Archived']]} onChange={(value) => set({ status: value || null })} />
          <Select label="Type" value={wanted.type} options={[['', 'All types'], ...MEMORY_TYPES.map((one) => [one, TYPE_WORDS[one]] as const)]} onChange={(value) => set({ type: value || null })} />
          <Select label="Agent" value={wanted.agent} options={[['', 'All agents'], ...agents.value.slice(0, 500).map((one) => [one.id, one.id] as const)]} onChange={(value) => set({ agent: value || null })} />
        </>
      )}
      {(['task', 'session'] as const).map((key) => wanted[key] && <button key={key} type="button" class="button" onClick={() => set({ [key]: null })}>{key} {wanted[key]} <Icon name="close" size={13} /></button>)}
    </form>
  );
}

function Listed(): JSX.Element {
  const wanted = wantedOf(route.value.query);
  const listing = useListing(wanted);
  const narrow = useMedia('(max-width: 820px)');
  unitsTick.value;
  const total = status.value ? Object.entries(status.value.units).reduce((sum, [key, value]) => (key === 'draft' ? sum : sum + value), 0) : 0;
  const archived = status.value?.units_archived ?? 0;
  const isFiltered = Object.values(wanted).some(Boolean);
  return (
    <div class="list-wrap">
      {listing.error && <Problem text={listing.error} retry={listing.load} />}
      {listing.rows.length === 0 && !listing.more ? (
        <Empty title={isFiltered ? 'No unit matches' : 'Nothing is recorded yet'}>{isFiltered && <button type="button" class="link" onClick={() => go(address('memory'), true)}>Clear the filter</button>}</Empty>
      ) : (
        <VirtualList
          label="Memory units, newest first"
          count={listing.rows.length}
          rowHeight={narrow ? 64 : 46}
          prepended={listing.fresh}
          keyOf={(at) => listing.rows[at]?.id ?? String(at)}
          row={(at) => <UnitRow row={listing.rows[at] as Row} />}
          onEnd={listing.load}
          foot={<div class="list-foot">{listing.more ? 'Loading…' : isFiltered ? `${count(listing.rows.length)} match` : `${total === 1 ? 'The only unit' : `All ${counted(Math.max(total, listing.rows.length), 'unit', 'units')}`}${archived > 0 ? `, ${count(archived)} of them archived` : ''}`}</div>}
        />
      )}
    </div>
  );
}

function UnitRow({ row }: { row: Row }): JSX.Element {
  // The newest that is known of it, where it is known. A row is drawn anew only where it says what it depends on.
  unitsTick.value;
  const live = unit(row.id);
  const state = live?.status ?? row.status;
  const past = state === 'superseded' || state === 'retracted';
  const open = openUnit.value === row.id;
  return (
    <div class={`unit-row${past ? ' unit-past' : ''}${open ? ' unit-row-open' : ''}`} onClick={(click) => { if (!(click.target as HTMLElement).closest('a')) go(unitAddress(row.id)); }}>
      <StatusMark status={live?.archived ?? row.archived ? 'archived' : state} word={false} />
      <TypeMark type={row.type} />
      <a class="event-main" data-main href={unitAddress(row.id)} aria-current={open ? 'true' : undefined}>
        <Line text={row.text} />
        {row.why && <span class="why line"><bdi>{row.why}</bdi></span>}
      </a>
      {row.relevance !== null ? <span class="score" title="How close its words and meaning are to what is sought, 0 to 1"><span class="unseen">closeness </span>{row.relevance.toFixed(2)}</span> : row.score !== null ? <Confidence score={row.score} /> : <span />}
      <span class="unit-agent"><AgentLink id={row.agent} /></span>
      <Epoch epoch={row.epoch} timestamp={row.timestamp} />
    </div>
  );
}

/** By meaning: what is closest to these words. */
function Sought({ text }: { text: string }): JSX.Element {
  const wanted = wantedOf(route.value.query);
  const narrow = useMedia('(max-width: 820px)');
  const asked = useAsked<Attuned>(
    (signal) => look('attune', {
      scope: { role: 'observer', max_units: SOUGHT, include_archived: true, ...(wanted.type ? { types: [wanted.type] } : {}), ...(wanted.session ? { session_id: wanted.session } : {}) },
      context_hint: text,
      explain: true,
    }, undefined, signal),
    [text, wanted.type, wanted.session],
  );
  const rows = useMemo(() => byCloseness(asked.value?.record ?? [])
    .filter(({ hit }) => wants(wanted, hit.memory_unit))
    .map(({ hit, closeness }): Row => ({ ...rowOf(hit.memory_unit), relevance: closeness ?? hit.relevance_score, why: hit.relevance_reason.replaceAll('your hint', 'what you seek') })), [asked.value, wanted.status, wanted.agent, wanted.task]);
  if (asked.error) return <Problem text={asked.error} retry={asked.again} />;
  if (asked.loading && rows.length === 0) return <Empty title="Looking…" />;
  if (rows.length === 0) return <Empty title="Nothing live answers to that"><p>Superseded and retracted units are not sought. The list shows them by status.</p></Empty>;
  return (
    <div class="list-wrap">
      <VirtualList
        label={`Units that answer to ${text}, closest first`}
        count={rows.length}
        rowHeight={narrow ? 84 : 62}
        keyOf={(at) => rows[at]?.id ?? String(at)}
        row={(at) => <UnitRow row={rows[at] as Row} />}
        foot={<div class="list-foot">{count(rows.length)} of {count(asked.value?.context_budget.units_available ?? 0)} live units, by how close their words and meaning are. What an agent is brought also counts relations, task and role: <a class="link" href={address('agents', [], { inspect: '1', hint: text })}>inspect that</a></div>}
      />
    </div>
  );
}

function Graph({ around }: { around: string | null }): JSX.Element {
  return <Suspense fallback={<div class="loom" />}><Loom around={around} /></Suspense>;
}
