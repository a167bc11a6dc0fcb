/** Looking at the hub over plain requests. Every address is relative to the page, so a path prefix changes nothing. */

import type { Refusal } from './types';

/** The hub said no, or could not be reached. */
export class Refused extends Error {
  readonly code: string;
  readonly action: string;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.code = refusal.code;
    this.action = refusal.suggested_action ?? '';
  }
}

/** The Field that this page shows; the hub's first one without a name. */
export const fieldName: string | null =
  typeof location === 'undefined' ? null : new URLSearchParams(location.search).get('field');

/** Where a Field's endpoints stand, relative to the page. */
export function fieldPath(path: string, field: string | null = fieldName): string {
  return field ? `v1/fields/${encodeURIComponent(field)}/${path}` : `v1/${path}`;
}

async function read<T>(answer: Response): Promise<T> {
  if (answer.ok) return (await answer.json()) as T;
  const body = (await answer.json().catch(() => null)) as Refusal | null;
  throw new Refused(body?.code ? body : { code: `HTTP_${answer.status}`, message: `The hub answered ${answer.status}.` });
}

async function reach(path: string, init?: RequestInit): Promise<Response> {
  try {
    return await fetch(new URL(path, document.baseURI), { cache: 'no-store', ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Refused({ code: 'UNREACHABLE', message: 'The hub cannot be reached.' });
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return read<T>(await reach(fieldPath(path), { signal }));
}

/** A look: what an operation would answer, without being one. It leaves no trace in the Field. */
export async function look<T>(operation: 'attune' | 'replay', payload: unknown, eyes?: string, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = { 'Content-Type': 'application/json' };
  if (eyes) headers['Akashik-Agent'] = eyes;
  const answer = await reach(fieldPath(`look/${operation}`), { method: 'POST', headers, body: JSON.stringify(payload), signal });
  return read<T>(answer);
}

export async function metricsText(): Promise<string> {
  const answer = await reach('metrics');
  if (!answer.ok) throw new Refused({ code: `HTTP_${answer.status}`, message: `The hub answered ${answer.status}.` });
  return answer.text();
}

/** The Fields of this hub, by name. */
export async function fields(): Promise<string[]> {
  const ready = await read<{ fields: Record<string, boolean> }>(await reach('readyz'));
  return Object.keys(ready.fields);
}

/** In words for people. */
export function inWords(error: unknown): string {
  if (error instanceof Refused) return error.action ? `${error.message} ${error.action}` : error.message;
  return error instanceof Error ? error.message : String(error);
}
