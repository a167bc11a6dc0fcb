/** Where the page is: `#/view/id?key=value`, so that every place has an address and Back goes back. */

import { computed, signal } from '@preact/signals';

export const VIEWS = ['live', 'memory', 'conflicts', 'agents', 'replay', 'field'] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  view: View;
  /** What the view shows, segment by segment. */
  path: string[];
  query: URLSearchParams;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [view, ...rest] = path.split('/').map(decode);
  const known = VIEWS.find((one) => one === view);
  return { view: known ?? 'live', path: known ? rest.filter(Boolean) : [], query: new URLSearchParams(query) };
}

export const route = signal<Route>(parseRoute(typeof location === 'undefined' ? '' : location.hash));
/** The unit whose panel is open. */
export const openUnit = computed(() => route.value.query.get('unit'));

export function address(view: View, path: string[] = [], query: Record<string, string | null | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value) search.set(key, value);
  const text = search.toString();
  return `#/${[view, ...path].map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

/** The same place with other query keys; null takes one away. */
export function withQuery(change: Record<string, string | null>): string {
  const { view, path, query } = route.value;
  return address(view, path, { ...Object.fromEntries(query), ...change });
}

/** The address of a unit's panel, over whatever is shown. */
export const unitAddress = (id: string): string => withQuery({ unit: id });

export function go(to: string, replace = false): void {
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  route.value = parseRoute(location.hash);
}

export function followAddress(): void {
  window.addEventListener('hashchange', () => {
    route.value = parseRoute(location.hash);
  });
  window.addEventListener('popstate', () => {
    route.value = parseRoute(location.hash);
  });
}
