/** The hub's Prometheus text as numbers, and what two of them in a row say of the time between. */

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export function parse(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split('\n')) {
    if (line.startsWith('#')) continue;
    const found = LINE.exec(line);
    if (!found) continue;
    const labels: Record<string, string> = {};
    for (const [, key = '', value = ''] of (found[2] ?? '').matchAll(LABEL)) labels[key] = value;
    samples.push({ name: found[1] ?? '', labels, value: Number(found[3]) });
  }
  return samples;
}

/** What is kept of one scrape. */
export interface Scrape {
  at: number;
  ok: number;
  refused: number;
  delivered: number;
  connections: number;
  logBytes: number;
  memoryBytes: number | null;
  /** Bounds of the buckets with their cumulative counts, both doors together. */
  latency: Map<number, number>;
}

export function scrape(text: string, field: string, at: number): Scrape {
  const scraped: Scrape = {
    at, ok: 0, refused: 0, delivered: 0, connections: 0, logBytes: 0, memoryBytes: null, latency: new Map(),
  };
  for (const { name, labels, value } of parse(text)) {
    const here = labels.field === undefined || labels.field === field;
    if (!here) continue;
    if (name === 'akashik_operations_total') {
      if (labels.outcome === 'ok') scraped.ok += value;
      else scraped.refused += value;
    } else if (name === 'akashik_notifications_total') scraped.delivered += value;
    else if (name === 'akashik_connections') scraped.connections += value;
    else if (name === 'akashik_log_bytes') scraped.logBytes = value;
    else if (name === 'akashik_memory_bytes') scraped.memoryBytes = value;
    else if (name === 'akashik_operation_seconds_bucket') {
      const bound = labels.le === '+Inf' ? Infinity : Number(labels.le);
      scraped.latency.set(bound, (scraped.latency.get(bound) ?? 0) + value);
    }
  }
  return scraped;
}

export interface Rates {
  at: number;
  operations: number;
  refusals: number;
  deliveries: number;
  p50: number | null;
  p99: number | null;
  connections: number;
  logBytes: number;
  memoryBytes: number | null;
}

/** The rates between two scrapes; nothing where the hub began anew in between. */
export function between(before: Scrape, after: Scrape): Rates | null {
  const seconds = (after.at - before.at) / 1_000;
  if (seconds <= 0 || after.ok < before.ok || after.delivered < before.delivered) return null;
  return {
    at: after.at,
    operations: (after.ok - before.ok) / seconds,
    refusals: Math.max(0, after.refused - before.refused) / seconds,
    deliveries: (after.delivered - before.delivered) / seconds,
    p50: quantile(before, after, 0.5),
    p99: quantile(before, after, 0.99),
    connections: after.connections,
    logBytes: after.logBytes,
    memoryBytes: after.memoryBytes,
  };
}

/** A quantile of what was counted between two scrapes, seconds, interpolated inside its bucket as Prometheus does. */
export function quantile(before: Scrape, after: Scrape, q: number): number | null {
  const bounds = [...after.latency.keys()].sort((a, b) => a - b);
  const counts = bounds.map((bound) => (after.latency.get(bound) ?? 0) - (before.latency.get(bound) ?? 0));
  const total = counts.at(-1) ?? 0;
  if (total <= 0) return null;
  const rank = q * total;
  const at = counts.findIndex((count) => count >= rank);
  const upper = bounds[at] ?? Infinity;
  const lower = bounds[at - 1] ?? 0;
  if (!Number.isFinite(upper)) return lower;
  const below = counts[at - 1] ?? 0;
  const inside = (counts[at] ?? 0) - below;
  return inside <= 0 ? upper : lower + ((upper - lower) * (rank - below)) / inside;
}
