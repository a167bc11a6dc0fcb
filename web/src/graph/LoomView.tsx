/** Memory as a graph: a neighbourhood, never everything. */

import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { hear, unit, unitsTick } from '../hub/field';
import { get } from '../hub/http';
import { RELATION_TYPES, type Unit } from '../hub/types';
import { Empty, Problem, StatusMark } from '../parts/bits';
import { RelationMark } from '../parts/Relation';
import { useAsked } from '../parts/use';
import { go, openUnit, withQuery } from '../route';
import { Canvas } from './Canvas';
import { type Neighbourhood, neighbourhood } from './neighbourhood';

/** Units shown where no unit is in the middle: the newest. */
const NEWEST = 60;

export function Legend(): JSX.Element {
  return (
    <ul class="legend" aria-label="Legend">
      {RELATION_TYPES.map((type) => <li key={type}><RelationMark type={type} /></li>)}
      {(['active', 'contested', 'superseded', 'retracted', 'archived'] as const).map((one) => <li key={one}><StatusMark status={one} /></li>)}
    </ul>
  );
}

async function newest(signal: AbortSignal): Promise<Neighbourhood> {
  const page = await get<{ units: Unit[]; cursor: string | null }>(`units?order=newest&limit=${NEWEST}`, signal);
  return { units: page.units.map((it) => ({ ...it, inbound_relations: [], conflicts: [] })), cut: page.cursor !== null };
}

export default function LoomView({ around }: { around: string | null }): JSX.Element {
  // A new unit, relation or conflict may change what is around: looked at again, but not for every one of a flood.
  const [round, setRound] = useState(0);
  const tick = unitsTick.value;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    const later = (): void => {
      timer = null;
      setRound((old) => old + 1);
    };
    const deaf = hear((batch) => {
      if (timer === null && batch.some((one) => one.memory_unit_id || one.conflict_id)) timer = setTimeout(later, 1_200);
    });
    return () => {
      deaf();
      if (timer !== null) clearTimeout(timer);
    };
  }, []);
  const asked = useAsked<Neighbourhood & { around: string | null }>(async (signal) => ({ ...(await (around ? neighbourhood(around, signal) : newest(signal))), around }), [around, round]);
  const found = asked.value;
  const units = useMemo(() => (found?.units ?? []).map((it) => {
    const live = unit(it.id);
    return live && live.status !== it.status ? { ...it, status: live.status } : it;
  }), [found, tick]);
  const chosen = openUnit.value ?? around;
  if (asked.error && !found) return <Problem text={asked.error} retry={asked.again} />;
  if (found && units.length === 0) return <Empty title="Nothing is recorded yet" />;
  const words = around
    ? `${units.length} units around ${around}${found?.cut ? ', and more beyond' : ''}.`
    : `The newest ${units.length} units.`;
  return (
    <div class="loom">
      <p class="loom-note">{found ? words : 'Looking around…'} <span class="wide-only">Each thread is an agent; what was known stands left of what came of it.</span></p>
      {/* Around another unit it is another picture, seen from the beginning. */}
      <Canvas key={found?.around ?? ''} units={units} chosen={chosen} label={words} onChoose={(id) => go(withQuery({ unit: id }))} onOpen={(id) => go(withQuery({ unit: id, around: id }))} />
      <Legend />
    </div>
  );
}
