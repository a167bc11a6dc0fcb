/** Places in the stream: `epoch.index`, ordered first by epoch, then by index, as numbers. */

export function compareCursors(a: string, b: string): number {
  const [epochA = 0, indexA = 0] = a.split('.').map(Number);
  const [epochB = 0, indexB = 0] = b.split('.').map(Number);
  return epochA - epochB || indexA - indexB;
}
