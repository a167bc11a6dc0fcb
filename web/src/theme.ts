/** Light or dark: the system's choice unless the person made one. */

import { computed, effect, signal } from '@preact/signals';

export type Choice = 'system' | 'light' | 'dark';
const KEY = 'akashik.theme';

function stored(): Choice {
  try {
    const text = localStorage.getItem(KEY);
    return text === 'light' || text === 'dark' ? text : 'system';
  } catch {
    return 'system';
  }
}

export const choice = signal<Choice>(stored());
const systemDark = signal(matchMedia('(prefers-color-scheme: dark)').matches);
export const dark = computed(() => (choice.value === 'system' ? systemDark.value : choice.value === 'dark'));
export const still = signal(matchMedia('(prefers-reduced-motion: reduce)').matches);

export function applyTheme(): void {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => {
    systemDark.value = event.matches;
  });
  matchMedia('(prefers-reduced-motion: reduce)').addEventListener('change', (event) => {
    still.value = event.matches;
  });
  effect(() => {
    document.documentElement.dataset.theme = dark.value ? 'dark' : 'light';
    try {
      if (choice.value === 'system') localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, choice.value);
    } catch {
      // A browser that keeps nothing follows the system.
    }
  });
}
