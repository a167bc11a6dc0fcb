/** Small things that every view shows the same way. */

import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { conflicts } from '../hub/field';
import type { ConflictStatus, UnitStatus } from '../hub/types';
import { address, unitAddress } from '../route';
import { fullTime, timeOf } from '../words/figures';
import { hueOf, initials, STATUS_WORDS } from '../words/names';
import { clamp, oneLine, shown } from '../words/text';
import { Icon } from './icons';

/** Text from outside, in its own direction, whole or begun. What agents say is set in the reading face. */
export function Said({ text, most = 1_200, small = false }: { text: string; most?: number; small?: boolean }): JSX.Element {
  const [open, setOpen] = useState(false);
  const { head, more } = clamp(text, open ? Number.MAX_SAFE_INTEGER : most);
  return (
    <div class={small ? 'said said-small' : 'said'}>
      <bdi dir="auto">{head}</bdi>
      {(more > 0 || open) && (
        <button type="button" class="link" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Show less' : `… ${more.toLocaleString()} more characters`}
        </button>
      )}
    </div>
  );
}

/** The same in one line. */
export function Line({ text, most }: { text: string; most?: number }): JSX.Element {
  return <bdi class="line" dir="auto">{oneLine(text, most)}</bdi>;
}

export function Epoch({ epoch, timestamp }: { epoch: number; timestamp?: string | null }): JSX.Element {
  return (
    <span class="when">
      {timestamp && <time dateTime={timestamp} title={fullTime(timestamp)}>{timeOf(timestamp)}</time>}
      <span class="epoch" title="Epoch: the Field's own clock"><span class="unseen">epoch </span>{epoch}</span>
    </span>
  );
}

export function Avatar({ name, size = 20 }: { name: string; size?: number }): JSX.Element {
  const style = { '--hue': String(hueOf(name)), '--size': `${size}px` } as Record<string, string>;
  return <span class={name === 'system' ? 'avatar avatar-system' : 'avatar'} style={style} aria-hidden="true">{initials(name)}</span>;
}

export function AgentLink({ id, mark = true }: { id: string; mark?: boolean }): JSX.Element {
  const name = <>{mark && <Avatar name={id} />}<bdi class="agent-name">{shown(id)}</bdi></>;
  if (id === 'system') return <span class="agent" title="The Field itself">{name}</span>;
  return <a class="agent" href={address('agents', [id])}>{name}</a>;
}

export function UnitLink({ id, children }: { id: string; children?: ComponentChildren }): JSX.Element {
  return <a class="id" href={unitAddress(id)}>{children ?? id}</a>;
}

export function ConflictLink({ id }: { id: string }): JSX.Element {
  return <a class="id id-clash" href={address('conflicts', [id])}>{id}</a>;
}

/** A status by its shape, its colour and its word. */
export function StatusMark({ status, word = true }: { status: UnitStatus | 'archived'; word?: boolean }): JSX.Element {
  const name = status === 'archived' ? 'Archived' : (STATUS_WORDS[status] ?? status);
  return (
    <span class={`status status-${status}`} title={word ? undefined : name}>
      <svg width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">{shape(status)}</svg>
      {word ? name : <span class="unseen">{name}</span>}
    </span>
  );
}

function shape(status: string): JSX.Element {
  switch (status) {
    case 'contested': return <path d="M5 .400L9.600 5 5 9.600.400 5z" fill="currentColor" />;
    case 'superseded': return <circle cx="5" cy="5" r="3.600" fill="none" stroke="currentColor" stroke-width="1.600" />;
    case 'retracted': return <path d="M1.500 1.500l7 7M8.500 1.500l-7 7" stroke="currentColor" stroke-width="1.800" />;
    case 'draft': return <circle cx="5" cy="5" r="3.600" fill="none" stroke="currentColor" stroke-width="1.600" stroke-dasharray="2 1.600" />;
    case 'pending_enrichment': return <path d="M5 1a4 4 0 0 1 0 8z" fill="currentColor" />;
    case 'archived': return <rect x="1.500" y="1.500" width="7" height="7" fill="none" stroke="currentColor" stroke-width="1.600" />;
    default: return <circle cx="5" cy="5" r="4" fill="currentColor" />;
  }
}

const CONFLICT_WORDS: Record<ConflictStatus, string> = {
  detected: 'Open', resolving: 'Being resolved', escalated: 'Needs a person', resolved: 'Resolved',
};

export function ConflictMark({ status }: { status: ConflictStatus }): JSX.Element {
  return <span class={`pill pill-${status}`}>{CONFLICT_WORDS[status] ?? status}</span>;
}

export function unresolvedCount(): number {
  return conflicts.value.filter((one) => one.status !== 'resolved').length;
}

export function Confidence({ score, wide = false }: { score: number; wide?: boolean }): JSX.Element {
  const percent = Math.round(score * 100);
  return (
    <span class={wide ? 'sure sure-wide' : 'sure'} title="Confidence: how sure the author says it is. It never counts in relevance.">
      <span class="sure-bar" aria-hidden="true"><span style={{ width: `${percent}%` }} /></span>
      <span class="unseen">confidence </span>{percent}%
    </span>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return <div class="empty"><p class="empty-title">{title}</p>{children}</div>;
}

export function Problem({ text, retry }: { text: string; retry?: () => void }): JSX.Element {
  return (
    <div class="problem" role="alert">
      <span><bdi>{text}</bdi></span>
      {retry && <button type="button" class="button" onClick={retry}>Try again</button>}
    </div>
  );
}

export function Copy({ text, label = 'Copy' }: { text: string; label?: string }): JSX.Element {
  const [done, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      return;
    }
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return (
    <button type="button" class="button button-quiet" onClick={() => void copy()} aria-label={label}>
      <Icon name="copy" size={15} /> <span aria-live="polite">{done ? 'Copied' : 'Copy'}</span>
    </button>
  );
}

/** A dialog of the browser's own, which keeps the focus inside and gives it back. */
export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      class="dialog"
      aria-label={title}
      onCancel={(event) => { event.preventDefault(); onClose(); }}
      onClick={(event) => { if (event.target === ref.current) onClose(); }}
    >
      <div class="dialog-head">
        <h2>{title}</h2>
        <button type="button" class="button button-icon" aria-label="Close" onClick={onClose}><Icon name="close" /></button>
      </div>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}

export function Select({ label, value, options, onChange }: {
  label: string;
  value: string;
  options: readonly (readonly [string, string])[];
  onChange: (value: string) => void;
}): JSX.Element {
  return (
    <label class="select">
      <span class="unseen">{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([key, word]) => <option key={key} value={key}>{word}</option>)}
      </select>
    </label>
  );
}
