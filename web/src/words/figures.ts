/** Numbers and times as people read them, in the viewer's own language and zone. */

const whole = new Intl.NumberFormat();
const tenths = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const dayAndClock = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' });

export const count = (value: number): string => whole.format(value);

/** A number and what it counts. */
export const counted = (value: number, one: string, many: string): string => `${count(value)} ${value === 1 ? one : many}`;

/** Steps of an axis of bytes: powers of two, so that its marks are whole. */
export const BYTE_STEPS: number[] = Array.from({ length: 45 }, (_, power) => 2 ** power);

export function compact(value: number): string {
  if (value < 10 && value % 1 !== 0) return tenths.format(value);
  if (value < 10_000) return whole.format(Math.round(value));
  if (value < 1_000_000) return `${tenths.format(value / 1_000)}k`;
  return `${tenths.format(value / 1_000_000)}M`;
}

export function bytes(value: number): string {
  if (value < 1_024) return `${whole.format(value)} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let scaled = value / 1_024;
  let at = 0;
  while (scaled >= 1_024 && at < units.length - 1) {
    scaled /= 1_024;
    at += 1;
  }
  return `${tenths.format(scaled)} ${units[at]}`;
}

export function milliseconds(seconds: number): string {
  if (!Number.isFinite(seconds)) return '–';
  const value = seconds * 1_000;
  return value < 10 ? `${value.toFixed(2)} ms` : value < 1_000 ? `${Math.round(value)} ms` : `${tenths.format(seconds)} s`;
}

export function span(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

/** The time of day if it was today, else with its day. */
export function timeOf(timestamp: string, now = new Date()): string {
  const at = new Date(timestamp);
  if (Number.isNaN(at.getTime())) return '';
  return at.toDateString() === now.toDateString() ? clock.format(at) : dayAndClock.format(at);
}

export function fullTime(timestamp: string): string {
  const at = new Date(timestamp);
  return Number.isNaN(at.getTime()) ? timestamp : full.format(at);
}

export function ago(timestamp: string | null, now = Date.now()): string {
  if (!timestamp) return 'never';
  const ms = now - new Date(timestamp).getTime();
  return ms < 5_000 ? 'just now' : `${span(ms)} ago`;
}
