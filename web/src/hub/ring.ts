/** The newest things, at most so many, newest first by index. */
export class Ring<T> {
  private items: T[] = [];

  constructor(readonly limit: number) {}

  get length(): number {
    return this.items.length;
  }

  /** By age: 0 is the newest. */
  at(age: number): T | undefined {
    return this.items[this.items.length - 1 - age];
  }

  push(batch: readonly T[]): void {
    for (const item of batch) this.items.push(item);
    // Trimmed in large steps, so that a busy stream does not move everything each time.
    if (this.items.length > this.limit * 1.25) this.items = this.items.slice(-this.limit);
  }

  /** Puts older things behind the oldest, as far as there is room. */
  unshift(older: readonly T[]): void {
    this.items = [...older, ...this.items].slice(-Math.round(this.limit * 1.25));
  }

  /** Oldest first. */
  all(): readonly T[] {
    return this.items;
  }

  clear(): void {
    this.items = [];
  }
}
