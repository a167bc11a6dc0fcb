/** The person at the page: an agent of the Field with the role `human_operator`, once it has a name. */

import { signal } from '@preact/signals';
import { agents, onOpen, refreshAgents, theLine } from './field';
import { get, Refused } from './http';
import type { Agent } from './types';

export const ROLE = 'human_operator';
const KEY = 'akashik.person';

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export const person = signal<string | null>(stored());
/** Whether somebody should be asked for a name, and what waits for it. */
export const asking = signal<(() => void) | null>(null);

/** Takes a name: registers it, or takes up again what this role registered before. */
export async function become(name: string): Promise<void> {
  await register(name);
  const before = person.value;
  person.value = name;
  if (before && before !== name) void theLine.ask(before, 'DEREGISTER', { agent_id: before }).catch(() => undefined);
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // A browser that keeps nothing asks again next time.
  }
  refreshAgents();
}

async function register(name: string): Promise<void> {
  try {
    await theLine.ask(name, 'REGISTER', { id: name, role: ROLE });
  } catch (error) {
    if (!(error instanceof Refused) || error.code !== 'AGENT_ID_TAKEN') throw error;
    const known = (await get<{ agents: Agent[] }>('agents')).agents;
    agents.value = known;
    if (known.find((agent) => agent.id === name)?.role !== ROLE) {
      throw new Refused({ code: error.code, message: `An agent is called ${name} already.`, suggested_action: 'Choose another name.' });
    }
  }
}

export async function leave(): Promise<void> {
  const name = person.value;
  person.value = null;
  try {
    localStorage.removeItem(KEY);
  } catch {
    // Nothing was kept.
  }
  if (name) await theLine.ask(name, 'DEREGISTER', { agent_id: name }).catch(() => undefined);
  refreshAgents();
}

/** Does something in the person's name; asks for the name first where there is none. */
export async function act<T>(operation: string, payload: unknown): Promise<T> {
  if (!person.value) {
    await new Promise<void>((named) => {
      asking.value = named;
    });
  }
  const name = person.value;
  if (!name) throw new Error('Nothing was done: you gave no name.');
  try {
    return await theLine.ask<T>(name, operation, payload);
  } catch (error) {
    // The name may have lapsed while the page slept.
    if (!(error instanceof Refused) || error.code !== 'AGENT_NOT_REGISTERED') throw error;
    await register(name);
    return theLine.ask<T>(name, operation, payload);
  }
}

/** From the first moment on, and after each break, the person is there. */
export function appear(): void {
  onOpen(() => {
    if (person.value) void register(person.value).then(refreshAgents).catch(() => undefined);
  });
}
