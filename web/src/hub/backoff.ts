/** How long to wait before the n-th attempt (from 0), milliseconds. The jitter comes after the cap: many pages that lost
 *  the same hub do not come back together. */
export function pause(attempt: number, random: () => number = Math.random): number {
  const most = Math.min(15_000, 400 * 2 ** Math.min(attempt, 10));
  return Math.round(most * (0.5 + random() / 2));
}
