/**
 * The one WebSocket of this tab. It watches as an observer, resumes behind what it has seen, and carries what the person
 * does. Messages that were not answered when it broke are sent again under their own ids, which the hub does once.
 */

import { pause } from './backoff';
import { Refused } from './http';
import type { Notification, Refusal } from './types';

export type LineState = 'connecting' | 'live' | 'broken';

interface Envelope {
  id: string;
  operation: string;
  agent_id: string;
  epoch: number;
  payload: Record<string, unknown>;
}

interface Unanswered {
  text: string;
  resolve(payload: unknown): void;
  reject(error: Error): void;
}

export interface LineEvents {
  state(state: LineState, retryAt: number | null): void;
  /** What is told; false where there is no room, then the line breaks and resumes. */
  told(notification: Notification): boolean;
  opened(): void;
  /** Asked before each attempt: where to go on from. Throws where the hub is not there. */
  place(): Promise<string>;
}

export interface Socket {
  readyState: number;
  onopen: ((event: unknown) => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: unknown) => void) | null;
  send(text: string): void;
  close(code?: number): void;
}

let number = 0;
const tab = Math.random().toString(36).slice(2, 10);

export class Line {
  private socket: Socket | null = null;
  private attempt = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private stopped = false;
  private connecting = false;
  private readonly unanswered = new Map<string, Unanswered>();

  constructor(
    private readonly address: (after: string) => string,
    private readonly events: LineEvents,
    private readonly open: (address: string) => Socket = (address) => new WebSocket(address, 'akashik.v0.1') as unknown as Socket,
  ) {}

  async connect(): Promise<void> {
    if (this.stopped || this.connecting || this.socket) return;
    this.clearTimer();
    this.connecting = true;
    this.events.state('connecting', null);
    let after: string;
    try {
      after = await this.events.place();
    } catch {
      this.connecting = false;
      this.retry();
      return;
    }
    this.connecting = false;
    if (this.stopped) return;
    const socket = this.open(this.address(after));
    this.socket = socket;
    socket.onopen = () => {
      this.attempt = 0;
      this.events.state('live', null);
      const earlier = [...this.unanswered.values()];
      // Who has to be there for what is sent again comes first.
      this.events.opened();
      for (const { text } of earlier) socket.send(text);
    };
    socket.onmessage = (event) => this.hear(String(event.data));
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.socket = null;
      this.retry();
    };
  }

  /** Gives the socket up and comes back: it is silent, or it brought more than there is room for. */
  breakOff(): void {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    if (socket) this.retry();
  }

  stop(): void {
    this.stopped = true;
    this.clearTimer();
    this.socket?.close(1000);
    this.socket = null;
  }

  get isOpen(): boolean {
    return this.socket?.readyState === 1;
  }

  /** Sends an operation; resolves with its payload. */
  ask<T>(agent: string, operation: string, payload: unknown): Promise<T> {
    number += 1;
    const id = `page-${tab}-${number}`;
    const envelope = { protocol: 'akashik', version: '0.1.0', id, operation, agent_id: agent, session_id: null, epoch: 0, payload };
    const text = JSON.stringify(envelope);
    return new Promise<T>((resolve, reject) => {
      this.unanswered.set(id, { text, resolve: resolve as (payload: unknown) => void, reject });
      if (this.isOpen) this.socket?.send(text);
    });
  }

  private hear(text: string): void {
    const envelope = JSON.parse(text) as Envelope;
    if (envelope.id.startsWith('push-')) {
      if (!this.events.told(envelope.payload as unknown as Notification)) this.breakOff();
      return;
    }
    const waiting = this.unanswered.get(envelope.id);
    if (!waiting) return;
    this.unanswered.delete(envelope.id);
    const { payload } = envelope;
    if (typeof payload.code === 'string' && typeof payload.message === 'string' && 'recoverable' in payload) {
      waiting.reject(new Refused(payload as unknown as Refusal));
    } else {
      waiting.resolve(payload);
    }
  }

  private retry(): void {
    if (this.stopped) return;
    const wait = pause(this.attempt);
    this.attempt += 1;
    this.events.state('broken', Date.now() + wait);
    this.clearTimer();
    this.timer = setTimeout(() => void this.connect(), wait);
  }

  private clearTimer(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}
