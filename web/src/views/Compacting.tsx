/** Looking after old memory: COMPACT, first foreseen, then done. */

import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { capabilities } from '../hub/field';
import { act } from '../hub/person';
import { MEMORY_TYPES, UNIT_STATUSES } from '../hub/types';
import { Dialog, Problem, Select } from '../parts/bits';
import { type Compacted, meant, outcome, payloadOf, refusedWords, type Strategy, syntheses, type Wish, WORDS } from '../words/compacting';
import { bytes, counted } from '../words/figures';
import { STATUS_WORDS, TYPE_WORDS } from '../words/names';

/** Whether this Field purges: at level 3, or as an extension. */
function purges(): boolean {
  const can = capabilities.value;
  return can !== null && (can.conformance_level >= 3 || can.extensions.includes('level-3-purge'));
}

export function Compacting(): JSX.Element {
  const [wish, setWish] = useState<Wish>({ strategy: 'archive', age: '', type: '', status: 'superseded', session: '', reason: '' });
  const [preview, setPreview] = useState<{ wish: Wish; found: Compacted } | null>(null);
  const [busy, setBusy] = useState(false);
  const [done, setDone] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const change = (part: Partial<Wish>): void => {
    setWish({ ...wish, ...part });
    setDone(null);
    setError(null);
  };
  const ask = async (asked: Wish, more: Record<string, unknown>, then: (found: Compacted) => void): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      then(await act<Compacted>('COMPACT', { ...payloadOf(asked), ...more }));
    } catch (failed) {
      setError(refusedWords(failed));
    }
    setBusy(false);
  };
  const foresee = (event: Event): void => {
    event.preventDefault();
    setDone(null);
    void ask(wish, { dry_run: true }, (found) => setPreview({ wish, found }));
  };
  const run = async (): Promise<void> => {
    if (!preview) return;
    await ask(preview.wish, {}, (found) => setDone(outcome(preview.wish.strategy, found)));
    setPreview(null);
  };
  const strategies: [Strategy, string][] = [['archive', 'Archive'], ['summarize', 'Summarize'], ...(purges() ? [['purge', 'Purge'] as [Strategy, string]] : [])];
  return (
    <section class="block" aria-label="Look after old memory">
      <h2>Look after old memory</h2>
      <form class="field" onSubmit={foresee}>
        <div class="choice">
          <Select label="What to do" value={wish.strategy} options={strategies} onChange={(value) => change({ strategy: value as Strategy })} />
          <Select label="Status" value={wish.status} options={[['', 'any status'], ...UNIT_STATUSES.filter((one) => one !== 'draft').map((one) => [one, STATUS_WORDS[one]] as const)]} onChange={(value) => change({ status: value as Wish['status'] })} />
          <Select label="Type" value={wish.type} options={[['', 'any type'], ...MEMORY_TYPES.map((one) => [one, TYPE_WORDS[one]] as const)]} onChange={(value) => change({ type: value as Wish['type'] })} />
        </div>
        <label class="field"><span>Older than so many epochs; nothing is any age</span><input class="input" name="age" type="number" min="0" step="1" value={wish.age} onInput={(event) => change({ age: event.currentTarget.value })} /></label>
        <label class="field"><span>Of this session alone</span><input class="input" name="session" value={wish.session} onInput={(event) => change({ session: event.currentTarget.value })} /></label>
        <label class="field"><span>Reason: stays in the log</span><input class="input" name="reason" value={wish.reason} dir="auto" onInput={(event) => change({ reason: event.currentTarget.value })} /></label>
        {error && <Problem text={error} />}
        {done && <div class="done" role="status">{done}</div>}
        <div class="actions"><button type="submit" class="button" disabled={busy}>See what it would do</button></div>
      </form>
      {preview && <Foreseen wish={preview.wish} found={preview.found} busy={busy} onLeave={() => setPreview(null)} onDo={() => void run()} />}
    </section>
  );
}

function Foreseen({ wish, found, busy, onLeave, onDo }: { wish: Wish; found: Compacted; busy: boolean; onLeave: () => void; onDo: () => void }): JSX.Element {
  const { verb, means } = WORDS[wish.strategy];
  const nothing = found.units_affected === 0;
  return (
    <Dialog title={nothing ? 'No unit matches' : `${verb} ${counted(found.units_affected, 'unit', 'units')}?`} onClose={onLeave}>
      <p>Units that are meant: <bdi>{meant(wish)}</bdi>. Drafts are not touched, nor units in an open conflict.</p>
      {!nothing && <p>{wish.strategy === 'summarize' ? `${syntheses(found)} would be written. ` : found.storage_reclaimed_bytes ? `${bytes(found.storage_reclaimed_bytes)} of memory would be given back. ` : ''}{means}</p>}
      <div class="actions">
        <button type="button" class="button" onClick={onLeave}>Leave it</button>
        {!nothing && <button type="button" class={wish.strategy === 'purge' ? 'button button-danger' : 'button button-main'} disabled={busy} onClick={onDo}>{verb}</button>}
      </div>
    </Dialog>
  );
}
