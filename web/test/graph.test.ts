import { describe, expect, it } from 'vitest';
import { type Knot, step, weave } from '../src/graph/loom';
import { AROUND_MAX, neighbourhood } from '../src/graph/neighbourhood';
import type { RelationType, UnitInFull } from '../src/hub/types';
import { turned } from '../src/graph/wheel';
import { address, parseRoute } from '../src/route';

const knot = (id: string, agent: string, epoch: number, ...targets: string[]): Knot =>
  ({ id, agent, epoch, relations: targets.map((target_id) => ({ type: 'informs' as RelationType, target_id })) });

describe('loom', () => {
  const knots = [knot('mem-3', 'ben', 3, 'mem-1'), knot('mem-1', 'ada', 1), knot('mem-4', 'ada', 4, 'mem-3', 'gone'), knot('mem-2', 'eli', 2)];
  const woven = weave(knots);
  const at = (id: string) => woven.placed.find((one) => one.id === id);

  it('stands to the right of what it names and of what its author said before', () => {
    expect([at('mem-1'), at('mem-2'), at('mem-3'), at('mem-4')].map((one) => one?.column)).toEqual([0, 0, 1, 2]);
    expect(woven.lanes).toEqual(['ada', 'eli', 'ben']);
    expect(woven.edges.map(({ source, target }) => `${source}>${target}`)).toEqual(['mem-3>mem-1', 'mem-4>mem-3']);
  });

  it('never puts two units in one place, whatever the order they come in', () => {
    const many = Array.from({ length: 300 }, (_, n) => knot(`mem-${n}`, `agent-${n % 7}`, n, `mem-${(n * 31) % 300}`));
    const one = weave(many);
    expect(new Set(one.placed.map(({ column, lane }) => `${column}/${lane}`)).size).toBe(300);
    expect(weave([...many].reverse())).toEqual(one);
  });

  it('is walked by arrow keys', () => {
    expect(step(woven, 'mem-1', 'right')).toBe('mem-4');
    expect(step(woven, 'mem-1', 'down')).toBe('mem-2');
    expect(step(woven, 'mem-1', 'left')).toBeNull();
    expect(step(woven, 'nobody', 'left')).toBe('mem-1');
  });
});

describe('neighbourhood', () => {
  const web = (size: number) => async (id: string): Promise<UnitInFull> => {
    const number = Number(id.slice(4));
    if (number >= size) throw new Error('gone');
    const near = [number + 1, number * 2 + 1].map((n) => ({ type: 'informs' as const, target_id: `mem-${n}`, description: null }));
    return { id, relations: near, inbound_relations: [], conflicts: [] } as unknown as UnitInFull;
  };

  it('goes three steps and leaves out what is gone', async () => {
    const found = await neighbourhood('mem-0', new AbortController().signal, web(4));
    expect(found.units.map((one) => one.id)).toEqual(['mem-0', 'mem-1', 'mem-2', 'mem-3']);
  });

  it('stays within its bound', async () => {
    const star = async (id: string): Promise<UnitInFull> => ({
      id, relations: Array.from({ length: 400 }, (_, n) => ({ type: 'informs', target_id: `mem-${n}`, description: null })), inbound_relations: [], conflicts: [],
    }) as unknown as UnitInFull;
    const found = await neighbourhood('mem-0', new AbortController().signal, star);
    expect([found.units.length, found.cut]).toEqual([AROUND_MAX, true]);
  });

  it('says that the middle is not there', async () => {
    await expect(neighbourhood('mem-9', new AbortController().signal, web(4))).rejects.toThrow('gone');
  });
});

describe('addresses', () => {
  it('read back as they were written', () => {
    const to = address('replay', ['task', 'a/b ?#é'], { unit: 'mem-1', gone: null });
    const { view, path, query } = parseRoute(to);
    expect([view, path, query.get('unit'), query.has('gone')]).toEqual(['replay', ['task', 'a/b ?#é'], 'mem-1', false]);
    expect(parseRoute('#/nowhere/x').view).toBe('live');
    expect(parseRoute('#/agents/%E0%A4%A').path).toEqual(['%E0%A4%A']);
  });
});

describe('the wheel', () => {
  const turn = (more: Partial<WheelEvent>): ReturnType<typeof turned> => turned({ deltaX: 0, deltaY: 0, deltaMode: 0, ctrlKey: false, shiftKey: false, ...more });
  it('zooms by a little with each notch, and back again', () => {
    expect(turn({ deltaY: -100 }).factor).toBeCloseTo(1.16, 2);
    expect(turn({ deltaY: -100 }).factor * turn({ deltaY: 100 }).factor).toBeCloseTo(1);
    expect(turn({ deltaY: -3, deltaMode: 1 }).factor).toBeCloseTo(1.16, 2);
    expect(turn({ deltaY: -50_000 }).factor).toBeLessThan(1.6);
  });
  it('follows a pinch, and moves along sideways or with Shift', () => {
    expect(turn({ deltaY: -4, ctrlKey: true }).factor).toBeCloseTo(1.04, 2);
    expect(turn({ deltaX: 30, deltaY: 4 })).toEqual({ factor: 1, x: -30, y: 0 });
    expect(turn({ deltaY: 100, shiftKey: true })).toEqual({ factor: 1, x: -100, y: 0 });
  });
});
