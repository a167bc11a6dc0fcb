import { describe, expect, it, vi } from 'vitest';
import { pause } from '../src/hub/backoff';
import { compareCursors } from '../src/hub/cursor';
import { Refused } from '../src/hub/http';
import { Intake } from '../src/hub/intake';
import { Line, type LineEvents, type Socket } from '../src/hub/line';
import { between, parse, quantile, scrape } from '../src/hub/prometheus';
import { Ring } from '../src/hub/ring';
import { regrouped, rowOf } from '../src/hub/rows';
import type { Unit } from '../src/hub/types';

describe('cursors', () => {
  it('order as numbers', () => {
    expect(['10.0', '9.12', '9.2', '100.1'].sort(compareCursors)).toEqual(['9.2', '9.12', '10.0', '100.1']);
  });
});

describe('backoff', () => {
  it('grows to a cap and keeps its jitter there', () => {
    expect([0, 1, 2].map((attempt) => pause(attempt, () => 1))).toEqual([400, 800, 1_600]);
    expect(pause(50, () => 0)).toBe(7_500);
    expect(pause(50, () => 1)).toBe(15_000);
  });
});

describe('ring', () => {
  it('keeps the newest within its bound', () => {
    const ring = new Ring<number>(100);
    for (let at = 0; at < 1_000; at += 1) ring.push([at]);
    expect(ring.length).toBeLessThanOrEqual(125);
    expect([ring.at(0), ring.at(1)]).toEqual([999, 998]);
    ring.unshift([-2, -1]);
    expect(ring.at(0)).toBe(999);
  });
});

describe('intake', () => {
  function staged(limit = 100) {
    const works: (() => void)[] = [];
    let clock = 0;
    const taken: number[][] = [];
    const intake = new Intake<number>((batch) => taken.push(batch), limit, { next: (work) => works.push(work), now: () => (clock += 1) }, 2, 4);
    return { intake, works, taken };
  }

  it('takes once a frame, in order, as much as there is time for', () => {
    const { intake, works, taken } = staged();
    for (let at = 0; at < 20; at += 1) expect(intake.add(at)).toBe(true);
    expect(works.length).toBe(1);
    works.shift()?.();
    expect(taken.length).toBe(1);
    expect(taken[0]?.length).toBeLessThan(20);
    while (works.length > 0) works.shift()?.();
    expect(taken.flat()).toEqual(Array.from({ length: 20 }, (_, at) => at));
  });

  it('says when it is full and goes on after', () => {
    const { intake, works } = staged(3);
    expect([1, 2, 3, 4].map((one) => intake.add(one))).toEqual([true, true, true, false]);
    while (works.length > 0) works.shift()?.();
    expect(intake.add(5)).toBe(true);
  });
});

describe('prometheus', () => {
  const text = (ok: number, buckets: [string, number][]): string => [
    '# HELP akashik_operations x',
    `akashik_operations_total{field="default",operation="RECORD",outcome="ok"} ${ok}`,
    'akashik_operations_total{field="default",operation="RECORD",outcome="INVALID_MESSAGE"} 3',
    'akashik_operations_total{field="other \\"x\\"",operation="RECORD",outcome="ok"} 900',
    ...buckets.map(([le, value]) => `akashik_operation_seconds_bucket{door="http",le="${le}"} ${value}`),
    'akashik_log_bytes{field="default"} 4096',
  ].join('\n');

  it('reads names, labels and values', () => {
    expect(parse(text(1, []))[2]?.labels.field).toBe('other \\"x\\"');
  });

  it('tells rates and quantiles of the time between', () => {
    const before = scrape(text(10, [['0.001', 0], ['0.01', 0], ['+Inf', 0]]), 'default', 0);
    const after = scrape(text(30, [['0.001', 50], ['0.01', 100], ['+Inf', 100]]), 'default', 2_000);
    const rates = between(before, after);
    expect([rates?.operations, rates?.refusals, rates?.logBytes]).toEqual([10, 0, 4_096]);
    expect(quantile(before, after, 0.5)).toBeCloseTo(0.001);
    expect(quantile(before, after, 0.75)).toBeCloseTo(0.0055);
    expect(quantile(before, before, 0.5)).toBeNull();
  });

  it('says nothing across a restart of the hub', () => {
    const before = scrape(text(30, []), 'default', 0);
    expect(between(before, scrape(text(1, []), 'default', 2_000))).toBeNull();
  });
});

describe('line', () => {
  class Fake implements Socket {
    readyState = 0;
    onopen: Socket['onopen'] = null;
    onmessage: Socket['onmessage'] = null;
    onclose: Socket['onclose'] = null;
    sent: string[] = [];
    constructor(readonly address: string) {}
    send(text: string): void { this.sent.push(text); }
    close(): void { this.readyState = 3; }
    opens(): void { this.readyState = 1; this.onopen?.({}); }
    hears(message: unknown): void { this.onmessage?.({ data: JSON.stringify(message) }); }
    breaks(): void { this.readyState = 3; this.onclose?.({}); }
  }

  function staged(room = () => true) {
    const sockets: Fake[] = [];
    const told: string[] = [];
    const states: string[] = [];
    let place = '0.0';
    const events: LineEvents = {
      state: (state) => states.push(state),
      told: (notification) => { if (!room()) return false; told.push(notification.cursor); place = notification.cursor; return true; },
      opened: () => undefined,
      place: async () => place,
    };
    const line = new Line((after) => `ws://hub/?after=${after}`, events, (address) => { const socket = new Fake(address); sockets.push(socket); return socket; });
    return { line, sockets, told, states };
  }
  const push = (cursor: string) => ({ id: `push-observer-${cursor}`, operation: 'SUBSCRIBE', agent_id: '', epoch: 1, payload: { cursor } });

  it('resumes behind what it has heard, and repeats what was not answered under its own id', async () => {
    vi.useFakeTimers();
    const { line, sockets, told, states } = staged();
    await line.connect();
    sockets[0]?.opens();
    sockets[0]?.hears(push('7.1'));
    const answer = line.ask<{ status: string }>('maria', 'MERGE', {});
    const first = sockets[0]?.sent[0];
    sockets[0]?.breaks();
    expect(states.at(-1)).toBe('broken');
    await vi.advanceTimersByTimeAsync(20_000);
    expect(sockets[1]?.address).toBe('ws://hub/?after=7.1');
    sockets[1]?.opens();
    expect(sockets[1]?.sent).toEqual([first]);
    sockets[1]?.hears({ id: JSON.parse(first ?? '{}').id, operation: 'MERGE', agent_id: 'maria', epoch: 9, payload: { status: 'resolved' } });
    expect(await answer).toEqual({ status: 'resolved' });
    expect(told).toEqual(['7.1']);
    line.stop();
    vi.useRealTimers();
  });

  it('tells a refusal from an answer', async () => {
    const { line, sockets } = staged();
    await line.connect();
    sockets[0]?.opens();
    const answer = line.ask('maria', 'MERGE', {});
    const { id } = JSON.parse(sockets[0]?.sent[0] ?? '{}');
    sockets[0]?.hears({ id, operation: 'MERGE', agent_id: 'maria', epoch: 9, payload: { code: 'MERGE_FAILED', message: 'no', recoverable: true } });
    await expect(answer).rejects.toBeInstanceOf(Refused);
    line.stop();
  });

  it('breaks off when there is no room, so that nothing is lost', async () => {
    vi.useFakeTimers();
    let full = false;
    const { line, sockets, told } = staged(() => !full);
    await line.connect();
    sockets[0]?.opens();
    sockets[0]?.hears(push('1.0'));
    full = true;
    sockets[0]?.hears(push('2.0'));
    expect(sockets[0]?.readyState).toBe(3);
    full = false;
    await vi.advanceTimersByTimeAsync(20_000);
    expect(sockets[1]?.address).toBe('ws://hub/?after=1.0');
    expect(told).toEqual(['1.0']);
    line.stop();
    vi.useRealTimers();
  });
});

describe('a list by status', () => {
  const it_ = (n: number, status: string): Unit => ({
    id: `mem-${n}`, type: 'finding', status, content: '', epoch: n, intent: { task_id: null }, source: { agent_id: 'a', session_id: null, timestamp: '' }, confidence: null,
  }) as unknown as Unit;
  const wanted = { type: '', status: 'contested', agent: '', task: '', session: '' };
  const ids = (rows: { id: string }[]): string[] => rows.map((row) => row.id);

  it('lets go of who left the status and takes who came into it, at its place', () => {
    const rows = [it_(9, 'contested'), it_(5, 'contested'), it_(2, 'contested')].map(rowOf);
    const changed = new Map([it_(9, 'active'), it_(7, 'contested'), it_(1, 'contested'), it_(6, 'retracted')].map((one) => [one.id, one]));
    expect(ids(regrouped(rows, changed, wanted))).toEqual(['mem-7', 'mem-5', 'mem-2']);
  });
});
