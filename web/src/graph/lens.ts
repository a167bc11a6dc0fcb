/** What part of a loom is seen: zoom about a place that stays where it is, and a wheel that feels like one. */

import type { Core } from 'cytoscape';
import { still } from '../theme';
import { turned } from './wheel';

export interface Frame { x1: number; y1: number; x2: number; y2: number }

/** Zooms about a place of the screen, which stays where it is; about the middle without one. */
export function zoomBy(core: Core, factor: number, at?: { x: number; y: number }, gently = false): void {
  const level = Math.min(core.maxZoom(), Math.max(core.minZoom(), core.zoom() * factor));
  const renderedPosition = at ?? { x: core.width() / 2, y: core.height() / 2 };
  if (gently && !still.value) {
    core.stop();
    core.animate({ zoom: { level, renderedPosition } }, { duration: 130 });
  } else core.zoom({ level, renderedPosition });
}

/** Shows a part of the loom whole, as large as it gets. */
export function show(core: Core, frame: Frame, padding: number, gently = false): void {
  const [wide, tall] = [frame.x2 - frame.x1, frame.y2 - frame.y1];
  const fits = Math.min((core.width() - 2 * padding) / wide, (core.height() - 2 * padding) / tall);
  const zoom = Math.min(core.maxZoom(), Math.max(core.minZoom(), fits));
  const pan = { x: core.width() / 2 - (frame.x1 + wide / 2) * zoom, y: core.height() / 2 - (frame.y1 + tall / 2) * zoom };
  if (gently && !still.value) core.animate({ zoom, pan }, { duration: 220 });
  else core.viewport({ zoom, pan });
}

/** Takes the wheel over from the library, which zooms too far with each notch; what comes between two frames is one move. */
export function followWheel(box: HTMLElement, core: () => Core | null): () => void {
  let [factor, x, y] = [1, 0, 0];
  let at = { x: 0, y: 0 };
  let frame = 0;
  const move = (): void => {
    frame = 0;
    const drawn = core();
    if (drawn && factor !== 1) zoomBy(drawn, factor, at);
    if (drawn && (x !== 0 || y !== 0)) drawn.panBy({ x, y });
    [factor, x, y] = [1, 0, 0];
  };
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    event.stopImmediatePropagation();
    const { left, top } = box.getBoundingClientRect();
    at = { x: event.clientX - left, y: event.clientY - top };
    const turn = turned(event);
    factor *= turn.factor;
    x += turn.x;
    y += turn.y;
    if (frame === 0) frame = requestAnimationFrame(move);
  };
  box.addEventListener('wheel', wheel, { capture: true, passive: false });
  return () => {
    box.removeEventListener('wheel', wheel, { capture: true });
    cancelAnimationFrame(frame);
  };
}
