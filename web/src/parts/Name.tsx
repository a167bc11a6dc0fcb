/** Asks the person for a name, which becomes an agent of the Field. */

import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { inWords } from '../hub/http';
import { asking, become, leave, person } from '../hub/person';
import { Dialog, Problem } from './bits';

export function Name(): JSX.Element {
  const [name, setName] = useState(person.value ?? '');
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const close = (): void => {
    const named = asking.value;
    asking.value = null;
    named?.();
  };
  const take = async (event: Event): Promise<void> => {
    event.preventDefault();
    const wanted = name.trim();
    if (!wanted) return;
    setBusy(true);
    try {
      if (wanted !== person.value) await become(wanted);
      close();
    } catch (failed) {
      setError(inWords(failed));
    }
    setBusy(false);
  };
  return (
    <Dialog title={person.value ? 'Who you are' : 'Take part'} onClose={close}>
      <form class="field" onSubmit={(event) => void take(event)}>
        <label class="field">
          <span>Your name in this Field</span>
          <input class="input" name="person" maxLength={120} value={name} autoComplete="nickname" placeholder="maria" onInput={(event) => setName(event.currentTarget.value)} autofocus />
        </label>
        <p class="muted">You join as an agent with the role <code>human_operator</code>. What you decide is recorded under this name. The browser remembers it.</p>
        {error && <Problem text={error} />}
        <div class="actions">
          {person.value && <button type="button" class="button" onClick={() => { void leave(); close(); }}>Leave the Field</button>}
          <button type="submit" class="button button-main" disabled={busy || !name.trim()}>{person.value ? 'Keep' : 'Join'}</button>
        </div>
      </form>
    </Dialog>
  );
}
