/** The keyboard: single keys, never while something is being typed. */

import { helping } from './app';
import { composing } from './parts/Compose';
import { address, go, openUnit, VIEWS, withQuery } from './route';

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input:not([type=range]):not([type=radio]), textarea, select, dialog') !== null;
}

export function shortcuts(): () => void {
  const pressed = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === 'Escape' && openUnit.value && !document.querySelector('dialog[open]')) {
      go(withQuery({ unit: null }));
      return;
    }
    if (isTyping(event.target)) return;
    const view = VIEWS[Number(event.key) - 1];
    if (view) go(address(view));
    else if (event.key === '/') {
      const field = document.querySelector<HTMLInputElement>('[data-search]');
      if (!field) return;
      event.preventDefault();
      field.focus();
      field.select();
    } else if (event.key === '?') helping.value = true;
    else if (event.key === 'r') composing.value = { about: null };
  };
  document.addEventListener('keydown', pressed);
  return () => document.removeEventListener('keydown', pressed);
}
