/** A small live chart. */

import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { dark } from '../theme';

export interface Series {
  word: string;
  light: string;
  dark: string;
  values: (number | null)[];
  dashed?: boolean;
}

interface Props {
  title: string;
  now: string;
  times: number[];
  series: Series[];
  format: (value: number) => string;
  /** Steps that the marks of the axis may be apart, where they are not to be decimal. */
  steps?: number[];
  /** The scale reaches at least this high. */
  least: number;
}

/** Seconds that a chart shows at least: of a single point the library would make years. */
const LEAST_SPAN = 20;

function span(times: ArrayLike<number> | undefined): [number, number] {
  const end = times?.[times.length - 1] ?? Date.now() / 1_000;
  return [Math.min(times?.[0] ?? end, end - LEAST_SPAN), end];
}

export function Chart({ title, now, times, series, format, steps, least }: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const isDark = dark.value;
  const colour = (one: Series): string => (isDark ? one.dark : one.light);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const quiet = isDark ? '#8f90a2' : '#656877';
    const faint = isDark ? '#262936' : '#ebe8e1';
    const axis = { stroke: quiet, font: '11px Inter, system-ui, sans-serif', grid: { stroke: faint, width: 1 }, ticks: { show: false } };
    const made = new uPlot(
      {
        width: element.clientWidth || 300,
        height: element.clientHeight || 96,
        padding: [6, 12, 0, 0],
        cursor: { y: false, points: { size: 5 } },
        legend: { show: false },
        scales: { x: { time: true, range: (plot) => span(plot.data[0]) }, y: { range: (_, __, most) => [0, Math.max((most ?? 0) * 1.15, least)] } },
        axes: [{ ...axis, size: 20, space: 90, grid: { show: false } }, { ...axis, size: 52, space: 34, ...(steps ? { incrs: steps } : {}), values: (_, splits) => splits.map(format) }],
        series: [{}, ...series.map((one) => ({ label: one.word, stroke: colour(one), width: 1.6, points: { show: false }, ...(one.dashed ? { dash: [5, 4] } : { fill: `${colour(one)}18` }) }))],
      },
      [times, ...series.map((one) => one.values)] as uPlot.AlignedData,
      element,
    );
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: element.clientHeight }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [isDark, series.length]);
  useEffect(() => {
    plot.current?.setData([times, ...series.map((one) => one.values)] as uPlot.AlignedData);
  }, [times]);
  return (
    <figure class="chart">
      <figcaption class="chart-head"><h2>{title}</h2><b>{now}</b></figcaption>
      <div class="chart-box" ref={box} role="img" aria-label={`${title}: ${now} now`} />
      <div class="chart-keys">{series.map((one) => <span key={one.word}><i class={one.dashed ? 'dashed' : ''} style={{ borderTopColor: colour(one) }} />{one.word}</span>)}</div>
    </figure>
  );
}
