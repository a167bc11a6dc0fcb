/** What comes in faster than it can be shown waits here and is taken with a frame, as much as a frame has time for. */

export interface Scheduler {
  /** Calls back before the next frame, or soon where nothing is drawn. */
  next(work: () => void): void;
  now(): number;
}

/** No eye follows more pictures of a list than so many a second; drawing fewer leaves time for everything else. */
const REST_MS = 120;
let lastFrame = 0;

/** Frames while the page is visible, the first at once; a timer while it is not, so that nothing piles up in a hidden tab. */
export const frames: Scheduler = {
  next(work) {
    const framed = (): void => {
      lastFrame = performance.now();
      work();
    };
    if (document.visibilityState !== 'visible') setTimeout(framed, 250);
    else setTimeout(() => requestAnimationFrame(framed), Math.max(0, lastFrame + REST_MS - performance.now()));
  },
  now: () => performance.now(),
};

export class Intake<T> {
  private waiting: T[] = [];
  private at = 0;
  private scheduled = false;

  constructor(
    private readonly take: (batch: T[]) => void,
    private readonly limit: number,
    private readonly scheduler: Scheduler = frames,
    private readonly budgetMs = 8,
    private readonly chunk = 64,
  ) {}

  get length(): number {
    return this.waiting.length - this.at;
  }

  /** Whether there was room for it. */
  add(item: T): boolean {
    if (this.length >= this.limit) return false;
    this.waiting.push(item);
    if (!this.scheduled) {
      this.scheduled = true;
      this.scheduler.next(this.work);
    }
    return true;
  }

  clear(): void {
    this.waiting = [];
    this.at = 0;
  }

  private readonly work = (): void => {
    this.scheduled = false;
    const until = this.scheduler.now() + this.budgetMs;
    const batch: T[] = [];
    do {
      const next = this.waiting.slice(this.at, this.at + this.chunk);
      this.at += next.length;
      batch.push(...next);
    } while (this.length > 0 && batch.length < 1_024 && this.scheduler.now() < until);
    if (this.length === 0) this.clear();
    else if (this.at > 4_096) {
      this.waiting = this.waiting.slice(this.at);
      this.at = 0;
    }
    if (batch.length > 0) this.take(batch);
    if (this.length > 0 && !this.scheduled) {
      this.scheduled = true;
      this.scheduler.next(this.work);
    }
  };
}
