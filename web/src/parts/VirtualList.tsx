/** A long list of which only what is seen is there. Rows have one height; the arrow keys walk from row to row. */

import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

interface Props {
  label: string;
  count: number;
  rowHeight: number;
  /** What makes a row the same row. */
  keyOf: (at: number) => string;
  row: (at: number) => JSX.Element;
  /** Called when the end comes near. */
  onEnd?: () => void;
  /** How many rows came in front since the last time; who has scrolled away stays where they read. */
  prepended?: number;
  foot?: JSX.Element | null;
  onTop?: (atTop: boolean) => void;
}

const BEYOND = 4;

export function VirtualList({ label, count, rowHeight, keyOf, row, onEnd, prepended = 0, foot, onTop }: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const seen = useRef(prepended);

  /** Where the list stands, as it was last told: to ask the browser would make it lay the page out in the middle of a batch. */
  const place = useRef({ top: 0, height: 800 });
  const reached = (): void => {
    const { top, height } = place.current;
    onTop?.(top < rowHeight);
    if (onEnd && top + height > count * rowHeight - 1.5 * height) onEnd();
  };

  const measure = (): void => {
    const element = box.current;
    if (!element) return;
    const [top, height] = [element.scrollTop, element.clientHeight];
    place.current = { top, height };
    setView((old) => (old.top === top && old.height === height ? old : { top, height }));
    reached();
  };

  useLayoutEffect(() => {
    const element = box.current;
    const more = prepended - seen.current;
    seen.current = prepended;
    if (element && more > 0 && place.current.top >= rowHeight) {
      element.scrollTop += more * rowHeight;
      measure();
    } else reached();
  }, [prepended, count]);

  const measuring = useRef(measure);
  measuring.current = measure;
  // At first, and where rows are of another height: narrower or wider, the browser may have moved it.
  useLayoutEffect(measure, [rowHeight]);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const watcher = new ResizeObserver(() => measuring.current());
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);

  const first = Math.max(0, Math.floor(view.top / rowHeight) - BEYOND);
  const last = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + BEYOND);
  const rows: JSX.Element[] = [];
  for (let at = first; at < last; at += 1) {
    rows.push(
      <div key={keyOf(at)} class="row" role="listitem" aria-setsize={count} aria-posinset={at + 1} data-at={at} style={{ top: `${at * rowHeight}px`, height: `${rowHeight}px` }}>
        {row(at)}
      </div>,
    );
  }

  const walk = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' || event.key === 'j' ? 1 : event.key === 'ArrowUp' || event.key === 'k' ? -1 : 0;
    const from = (event.target as HTMLElement).closest<HTMLElement>('[data-at]');
    if (step === 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = from ? Number(from.dataset.at) + step : first;
    if (at < 0 || at >= count) return;
    event.preventDefault();
    event.stopPropagation();
    const element = box.current;
    if (!element) return;
    const [top, bottom] = [at * rowHeight, (at + 1) * rowHeight];
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
    const focus = (): boolean => {
      const main = element.querySelector<HTMLElement>(`[data-at="${at}"] [data-main]`);
      main?.focus({ preventScroll: true });
      return main !== null;
    };
    // A row that was out of sight is there with the next frame.
    if (!focus()) requestAnimationFrame(focus);
  };

  return (
    <div class="virtual" ref={box} onScroll={measure} onKeyDown={walk} tabIndex={0} role="region" aria-label={label}>
      {count > 0 && <div class="virtual-inner" role="list" aria-label={label} style={{ height: `${count * rowHeight}px` }}>{rows}</div>}
      {foot}
    </div>
  );
}
