/** The last minutes as a strip: a bar for each span of time, its height by what was recorded, vermilion where memory clashed. */

import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { hear, isNews } from '../hub/field';
import { dark } from '../theme';
import { weightOf } from '../words/names';

const SPAN_MS = 1_000;
const BARS = 180;

interface Bar { all: number; clash: number; good: number }
/** By second. */
const bars = new Map<number, Bar>();

hear((batch) => {
  const now = Math.floor(Date.now() / SPAN_MS);
  // What happened before the page was opened stands at the time that its units tell, or nowhere.
  const told = new Map<number, number>();
  for (const { event, epoch, memory_unit: it } of batch) {
    if (event === 'memory.recorded' && it) told.set(epoch, Math.floor(Date.parse(it.source.timestamp) / SPAN_MS));
  }
  for (const one of batch) {
    const at = isNews(one) ? now : told.get(one.epoch);
    if (at === undefined || at < now - BARS) continue;
    const bar = bars.get(at) ?? { all: 0, clash: 0, good: 0 };
    bars.set(at, bar);
    const weight = weightOf(one.event);
    bar.all += 1;
    if (weight === 'clash') bar.clash += 1;
    else if (weight === 'good') bar.good += 1;
  }
  for (const at of bars.keys()) if (at < now - BARS) bars.delete(at);
});

export function Pulse(): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const isDark = dark.value;
  useEffect(() => {
    const draw = (): void => {
      const element = canvas.current;
      const pen = element?.getContext('2d');
      if (!element || !pen) return;
      const [width, height] = [element.clientWidth, element.clientHeight];
      const scale = devicePixelRatio;
      if (element.width !== Math.round(width * scale)) element.width = Math.round(width * scale);
      if (element.height !== Math.round(height * scale)) element.height = Math.round(height * scale);
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.clearRect(0, 0, width, height);
      const now = Math.floor(Date.now() / SPAN_MS);
      const step = Math.max(5, width / BARS);
      const most = Math.max(4, ...[...bars.values()].map((bar) => bar.all));
      pen.fillStyle = isDark ? '#262936' : '#e3e0d8';
      pen.fillRect(0, height - 1, width, 1);
      for (const [at, bar] of bars) {
        const x = width - (now - at + 1) * step;
        if (x < -step) continue;
        const tall = (count: number): number => Math.max(count > 0 ? 3 : 0, Math.sqrt(count / most) * (height - 8));
        pen.fillStyle = isDark ? '#5b63a8' : '#aab3ea';
        round(pen, x, height - 1, step - 2, tall(bar.all));
        pen.fillStyle = isDark ? '#62d1a2' : '#18704b';
        if (bar.good > 0) round(pen, x, height - 1, step - 2, tall(bar.good));
        pen.fillStyle = isDark ? '#ff8a70' : '#c2381f';
        if (bar.clash > 0) round(pen, x, height - 1, step - 2, tall(bar.clash));
      }
    };
    draw();
    const timer = setInterval(draw, SPAN_MS);
    return () => clearInterval(timer);
  }, [isDark]);
  return <canvas class="pulse-chart" ref={canvas} role="img" aria-label="Events of the last minutes, second by second" />;
}

function round(pen: CanvasRenderingContext2D, x: number, base: number, width: number, tall: number): void {
  pen.beginPath();
  pen.roundRect(x, base - tall, Math.max(1, width), tall, [2, 2, 0, 0]);
  pen.fill();
}
