/** Small hooks. */

import { useEffect, useState } from 'preact/hooks';
import { inWords } from '../hub/http';

export interface Asked<T> {
  value: T | null;
  error: string | null;
  loading: boolean;
  again: () => void;
}

/** Asks the hub for something whenever `keys` change; an answer that came too late is dropped. */
export function useAsked<T>(ask: ((signal: AbortSignal) => Promise<T>) | null, keys: readonly unknown[]): Asked<T> {
  const [state, setState] = useState<{ value: T | null; error: string | null; loading: boolean }>({ value: null, error: null, loading: ask !== null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (!ask) {
      setState({ value: null, error: null, loading: false });
      return;
    }
    const abort = new AbortController();
    setState((old) => ({ ...old, loading: true, error: null }));
    ask(abort.signal)
      .then((value) => !abort.signal.aborted && setState({ value, error: null, loading: false }))
      .catch((error: unknown) => !abort.signal.aborted && setState({ value: null, error: inWords(error), loading: false }));
    return () => abort.abort();
  }, [...keys, round]);
  return { ...state, again: () => setRound((old) => old + 1) };
}

/** Whether a media query holds. */
export function useMedia(query: string): boolean {
  const [holds, setHolds] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const change = (): void => setHolds(list.matches);
    change();
    list.addEventListener('change', change);
    return () => list.removeEventListener('change', change);
  }, [query]);
  return holds;
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Akashik`;
  }, [title]);
}
