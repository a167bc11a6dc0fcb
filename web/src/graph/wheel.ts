/** A turn of the wheel, as the movement that it means. */

/** What a notch of a usual mouse wheel, 100 pixels, zooms: to 1.16 times or back. A pinch on a trackpad sends far less. */
const WHEEL = 0.0015;
const PINCH = 0.01;
/** A wheel that counts in lines or pages, in pixels. */
const UNITS_PX = [1, 33, 400];

/** The factor and the way to pan that a turn of the wheel means. */
export function turned(event: Pick<WheelEvent, 'deltaX' | 'deltaY' | 'deltaMode' | 'ctrlKey' | 'shiftKey'>): { factor: number; x: number; y: number } {
  const px = UNITS_PX[event.deltaMode] ?? 1;
  const [across, along] = [event.deltaX * px, event.deltaY * px];
  if (event.ctrlKey) return { factor: Math.exp(-along * PINCH), x: 0, y: 0 };
  // With Shift, or sideways, it moves along the threads.
  if (event.shiftKey || Math.abs(across) > Math.abs(along)) return { factor: 1, x: -(across || along), y: 0 };
  return { factor: Math.exp(-Math.max(-300, Math.min(300, along)) * WHEEL), x: 0, y: 0 };
}
