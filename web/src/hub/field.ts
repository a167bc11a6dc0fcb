/**
 * What this page knows of the Field. Filled from the GET endpoints, kept up by the stream; everything here has a bound.
 * Units and lists come from the hub's durable state, and the stream changes them from the epoch of that state on, so a
 * page that is opened late shows the same as one that watched all along.
 */

import { batch, signal } from '@preact/signals';
import { compareCursors } from './cursor';
import { fieldName, fieldPath, get, inWords, metricsText } from './http';
import { Intake } from './intake';
import { Line, type LineState } from './line';
import { between, type Rates, type Scrape, scrape } from './prometheus';
import { Ring } from './ring';
import type { Agent, Capabilities, Conflict, Notification, Status, Unit, UnitInFull } from './types';

/** Events kept for the Live view. */
export const EVENTS_MAX = 4_000;
/** How many epochs before now the stream begins when the page is opened. */
const HISTORY_EPOCHS = 3_000;
/** Units kept by id. A listed row keeps its own short form. */
const UNITS_MAX = 6_000;
/** Events that may wait to be shown; beyond, the line breaks off and resumes when they are. */
const WAITING_MAX = 50_000;
const POLL_MS = 2_000;
/** Rates kept for the charts: half an hour. */
const RATES_MAX = 900;

export const line = signal<{ state: LineState; retryAt: number | null }>({ state: 'connecting', retryAt: null });
export const status = signal<Status | null>(null);
export const capabilities = signal<Capabilities | null>(null);
export const agents = signal<Agent[]>([]);
export const conflicts = signal<Conflict[]>([]);
export const conflictsLoaded = signal(false);
export const problem = signal<string | null>(null);
export const rates = signal<Rates[]>([]);

export const events = new Ring<Notification>(EVENTS_MAX);
/** Changes with each batch of events. */
export const eventsTick = signal(0);
/** How many came since the page was opened, for those who look for what is new. */
export let arrived = 0;
/** The epoch before which the page holds no events. */
export const historyFrom = signal(0);

const units = new Map<string, Unit>();
/** Changes with each batch of changed units. */
export const unitsTick = signal(0);

type Hearer = (batch: Notification[]) => void;
const hearers = new Set<Hearer>();
/** Calls with each batch of what is told from now on. */
export function hear(hearer: Hearer): () => void {
  hearers.add(hearer);
  return () => hearers.delete(hearer);
}

let cursor: string | null = null;
/** The state that was loaded stands for everything up to here. */
let loadedEpoch = 0;
/** Whether something happened since the page was opened. */
export const isNews = (one: Notification): boolean => one.epoch > loadedEpoch;
let lastHeard = 0;

export function unit(id: string): Unit | undefined {
  return units.get(id);
}

export function remember(fresh: Iterable<Unit>): void {
  for (const one of fresh) {
    units.delete(one.id);
    units.set(one.id, one);
  }
  if (units.size > UNITS_MAX) {
    let surplus = units.size - UNITS_MAX * 0.9;
    for (const id of units.keys()) {
      if (surplus-- <= 0) break;
      units.delete(id);
    }
  }
}

const asked = new Map<string, Promise<UnitInFull>>();
/** A unit in full, asked of the hub; those who ask at once share one request. */
export function fetchUnit(id: string): Promise<UnitInFull> {
  const known = asked.get(id);
  if (known) return known;
  const answer = get<UnitInFull>(`units/${encodeURIComponent(id)}`);
  asked.set(id, answer);
  void answer
    .then((found) => {
      remember([found]);
      unitsTick.value += 1;
    })
    .catch(() => undefined)
    .finally(() => asked.delete(id));
  return answer;
}

/** Makes sure that units are known; those that are not there are left out. */
export async function ensure(ids: Iterable<string>): Promise<void> {
  const missing = [...new Set(ids)].filter((id) => !units.has(id));
  for (let at = 0; at < missing.length; at += 4) {
    await Promise.allSettled(missing.slice(at, at + 4).map(fetchUnit));
  }
}

const CONFLICT_STATUSES = 'detected,resolving,escalated,resolved';

/** One request at a time, and one more where something changed meanwhile; what takes long is asked for less often. */
function refresher(work: () => Promise<void>, restMs: number): () => void {
  let running = false;
  let again = false;
  const run = async (): Promise<void> => {
    running = true;
    do {
      again = false;
      const begin = performance.now();
      await work().catch(() => undefined);
      const took = performance.now() - begin;
      await new Promise((rest) => setTimeout(rest, Math.max(restMs, 8 * took)));
    } while (again);
    running = false;
  };
  return () => {
    if (running) again = true;
    else void run();
  };
}

const resolvedUnits = new Set<string>();
let resolvedConflicts = new Set<string>();

async function loadConflicts(): Promise<void> {
  const settling = resolvedConflicts;
  resolvedConflicts = new Set();
  const listed = (await get<{ conflicts: Conflict[] }>(`conflicts?status=${CONFLICT_STATUSES}`)).conflicts;
  batch(() => {
    conflicts.value = listed.reverse();
    conflictsLoaded.value = true;
  });
  // A unit that turns active again is no event of its own.
  for (const one of listed) {
    if (settling.has(one.id)) [one.unit_a, one.unit_b].forEach((id) => units.has(id) && resolvedUnits.add(id));
  }
  const again = [...resolvedUnits].slice(0, 64);
  again.forEach((id) => resolvedUnits.delete(id));
  await Promise.allSettled(again.map(fetchUnit));
}

async function loadAgents(): Promise<void> {
  agents.value = (await get<{ agents: Agent[] }>('agents')).agents;
}

export const refreshConflicts = refresher(loadConflicts, 300);
export const refreshAgents = refresher(loadAgents, 500);

const intake = new Intake<Notification>(take, WAITING_MAX);

function take(told: Notification[]): void {
  const changed: Unit[] = [];
  let [ofConflicts, ofAgents] = [false, false];
  const fresh: Notification[] = [];
  for (const one of told) {
    if (cursor !== null && compareCursors(one.cursor, cursor) <= 0) continue;
    cursor = one.cursor;
    const { memory_unit: whole, ...light } = one;
    const news = isNews(one);
    if (whole) {
      // What the stream brings of a unit does not say whether it is archived; its events do.
      const archived = one.event === 'memory.archived' || (units.get(whole.id)?.archived ?? whole.archived);
      if (news || !units.has(whole.id)) changed.push(archived === undefined ? whole : { ...whole, archived });
    }
    // The row shows a line of the unit; the unit itself is kept once, elsewhere.
    fresh.push(whole ? { ...light, memory_unit: lighter(whole) } : light);
    if (one.conflict_id) {
      ofConflicts ||= news;
      if (news && one.event === 'conflict.resolved') resolvedConflicts.add(one.conflict_id);
    }
    if (one.event.startsWith('agent.')) ofAgents ||= news;
  }
  if (fresh.length === 0) return;
  remember(changed);
  events.push(fresh);
  arrived += fresh.length;
  batch(() => {
    eventsTick.value += 1;
    if (changed.length > 0) unitsTick.value += 1;
    for (const hearer of hearers) hearer(fresh);
  });
  if (ofConflicts) refreshConflicts();
  if (ofAgents) refreshAgents();
}

/** A unit as a row shows it: long contents would be held twice. */
function lighter(unit: Unit): Unit {
  return { ...unit, content: unit.content.slice(0, 320), relations: unit.relations.slice(0, 8), confidence: null };
}

/** Where the stream goes on. Where the hub's clock is behind what this page has seen, the Field is another one. */
async function place(): Promise<string> {
  const now = await get<Status>('field/status');
  status.value = now;
  if (cursor !== null && Number(cursor.split('.')[0]) > now.epoch) forget();
  if (cursor === null) {
    const from = Math.max(0, now.epoch - HISTORY_EPOCHS);
    loadedEpoch = now.epoch;
    historyFrom.value = from;
    cursor = `${from}.0`;
    refreshConflicts();
    refreshAgents();
    capabilities.value = await get<Capabilities>('field/capabilities');
  } else {
    // What was missed while the line was down comes with the stream; presence is no event.
    refreshAgents();
  }
  return cursor;
}

/** Anew on a Field that is not the one that was watched. */
export const anew = signal(0);
function forget(): void {
  cursor = null;
  intake.clear();
  units.clear();
  events.clear();
  batch(() => {
    conflicts.value = [];
    agents.value = [];
    conflictsLoaded.value = false;
    eventsTick.value += 1;
    unitsTick.value += 1;
    anew.value += 1;
  });
}

function streamAddress(after: string): string {
  const url = new URL(fieldPath('ws', fieldName), document.baseURI);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  url.search = new URLSearchParams({ observer: 'true', include_unit: 'true', after }).toString();
  return url.href;
}

const openers = new Set<() => void>();
/** Calls whenever the line is open anew. */
export function onOpen(opener: () => void): void {
  openers.add(opener);
  if (theLine.isOpen) opener();
}

export const theLine = new Line(streamAddress, {
  state: (state, retryAt) => {
    line.value = { state, retryAt };
  },
  told: (notification) => {
    lastHeard = Date.now();
    return intake.add(notification);
  },
  opened: () => {
    lastHeard = Date.now();
    problem.value = null;
    openers.forEach((opener) => opener());
  },
  place: async () => {
    try {
      return await place();
    } catch (error) {
      problem.value = inWords(error);
      throw error;
    }
  },
});

/** Earlier events, page by page, in front of those that are there. */
export async function loadEarlier(): Promise<number> {
  const end = historyFrom.value;
  if (end === 0) return 0;
  const begin = Math.max(0, end - HISTORY_EPOCHS);
  const found: Notification[] = [];
  let after = `${begin}.0`;
  for (let page = 0; page < 8; page += 1) {
    const query = new URLSearchParams({
      observer: 'true', include_unit: 'true', poll: 'true', wait_ms: '0', limit: '1000', after,
    });
    const answer = await get<{ events: Notification[]; cursor: string }>(`events?${query}`);
    const before = answer.events.filter((one) => one.epoch <= end);
    found.push(...before.map((one) => (one.memory_unit ? { ...one, memory_unit: lighter(one.memory_unit) } : one)));
    if (before.length < answer.events.length || answer.events.length === 0) break;
    after = answer.cursor;
  }
  const oldest = events.all()[0];
  const fresh = oldest ? found.filter((one) => compareCursors(one.cursor, oldest.cursor) < 0) : found;
  events.unshift(fresh);
  batch(() => {
    historyFrom.value = begin;
    eventsTick.value += 1;
  });
  return fresh.length;
}

let lastScrape: Scrape | null = null;
let silentPolls = 0;

async function poll(): Promise<void> {
  try {
    const now = await get<Status>('field/status');
    silentPolls = 0;
    status.value = now;
    const here = scrape(await metricsText(), now.name, Date.now());
    const rate = lastScrape && between(lastScrape, here);
    lastScrape = here;
    if (rate) rates.value = [...rates.value.slice(1 - RATES_MAX), rate];
    // The hub tells of everything; where it is ahead and says nothing for long, the line is dead and nobody noticed.
    const behind = cursor !== null && now.log_entries > 0 && line.value.state === 'live';
    if (behind && Date.now() - lastHeard > 60_000 && lastHeard > 0 && entriesSince(now)) theLine.breakOff();
  } catch {
    silentPolls += 1;
    if (silentPolls >= 3 && line.value.state === 'live') theLine.breakOff();
  }
}

let entriesThen = 0;
/** Whether the log grew since this was last asked. */
function entriesSince(now: Status): boolean {
  const grew = now.log_entries > entriesThen;
  entriesThen = now.log_entries;
  return grew;
}

/** Begins to watch. */
export function watch(): void {
  void theLine.connect();
  const tick = async (): Promise<void> => {
    if (document.visibilityState === 'visible') await poll();
    setTimeout(() => void tick(), POLL_MS);
  };
  void tick();
  window.addEventListener('online', () => void theLine.connect());
}
