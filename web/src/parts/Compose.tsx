/** Recording a unit by hand: a directive, an answer, a correction. */

import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { inWords } from '../hub/http';
import { act } from '../hub/person';
import { MEMORY_TYPES, type MemoryType, RELATION_TYPES, type Unit } from '../hub/types';
import { go, unitAddress } from '../route';
import { RELATIONS, TYPE_WORDS } from '../words/names';
import { Dialog, Line, Problem } from './bits';

export const composing = signal<{ about: Unit | null } | null>(null);

export function Compose({ about }: { about: Unit | null }): JSX.Element {
  const [type, setType] = useState<MemoryType>(about?.type === 'question' ? 'decision' : 'human_directive');
  const [content, setContent] = useState('');
  const [purpose, setPurpose] = useState('');
  const [relation, setRelation] = useState<string>(about?.type === 'question' ? 'answers' : 'informs');
  const [score, setScore] = useState(0.9);
  const [reason, setReason] = useState('');
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const close = (): void => {
    composing.value = null;
  };
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const answer = await act<{ memory_unit_id: string }>('RECORD', {
        type, content,
        intent: { purpose, ...(about?.intent.task_id ? { task_id: about.intent.task_id } : {}) },
        confidence: { score, reason },
        relations: about ? [{ type: relation, target_id: about.id }] : [],
      });
      close();
      go(unitAddress(answer.memory_unit_id));
    } catch (failed) {
      setError(inWords(failed));
      setBusy(false);
    }
  };
  return (
    <Dialog title={about ? `Record about ${about.id}` : 'Record something'} onClose={close}>
      <form class="field" onSubmit={(event) => void send(event)}>
        <label class="field"><span>Type</span>
          <span class="select"><select value={type} onChange={(event) => setType(event.currentTarget.value as MemoryType)}>
            {MEMORY_TYPES.map((one) => <option key={one} value={one}>{TYPE_WORDS[one]}</option>)}
          </select></span>
        </label>
        {about && (
          <label class="field"><span>It … <Line text={about.content} most={80} /></span>
            <span class="select"><select value={relation} onChange={(event) => setRelation(event.currentTarget.value)}>
              {RELATION_TYPES.map((one) => <option key={one} value={one}>{RELATIONS[one].out}</option>)}
            </select></span>
          </label>
        )}
        <label class="field"><span>What the team should know</span><textarea class="input" autofocus name="content" value={content} required dir="auto" onInput={(event) => setContent(event.currentTarget.value)} /></label>
        <label class="field"><span>Why you record it</span><input class="input" name="purpose" value={purpose} required dir="auto" onInput={(event) => setPurpose(event.currentTarget.value)} /></label>
        <label class="field"><span>How sure you are: {Math.round(score * 100)}%</span><input type="range" min="0" max="1" step="0.05" value={score} onInput={(event) => setScore(Number(event.currentTarget.value))} /></label>
        <label class="field"><span>Why that sure</span><input class="input" name="reason" value={reason} required dir="auto" onInput={(event) => setReason(event.currentTarget.value)} /></label>
        {error && <Problem text={error} />}
        <div class="actions"><button type="submit" class="button button-main" disabled={busy}>Record</button></div>
      </form>
    </Dialog>
  );
}
