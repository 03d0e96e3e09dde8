/** A socket to the gateway. It carries many topics and resumes them after a break. */

import type { Problem } from "./connection.ts";

export type ConnectionState = "connecting" | "live" | "reconnecting" | "signed-out";

export interface TopicListener {
  event?: (data: unknown, seq: number) => void;
  delta?: (data: unknown) => void;
  /** Events were missed and cannot be sent again: fetch the list again. */
  resync?: (seq: number) => void;
  /** The subscription is active. The next event has a higher number than `seq`. */
  subscribed?: (seq: number) => void;
  /** The subscription is refused, for good. */
  refused?: (problem: Problem) => void;
}

/** The part of a WebSocket that is used here, so that a test can play the gateway. */
export interface Wire {
  send(text: string): void;
  close(): void;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number }) => void) | null;
}

export interface SocketOptions {
  open: () => Wire;
  /** Whether the caller is signed in. Throws when the gateway does not answer. */
  isSignedIn: () => Promise<boolean>;
  random?: () => number;
  /** Milliseconds from one ping to the next. */
  pingInterval?: number;
}

interface Topic {
  listeners: Set<TopicListener>;
  durable: boolean;
  seq: number | null;
  /** Whether events may have been missed since the last break. */
  broken: boolean;
}

interface Message {
  type: string;
  topic?: string;
  seq?: number;
  data?: unknown;
  code?: string;
  message?: string;
}

export const SIGNED_OUT = 4401;
const FIRST_RETRY_DELAY = 250;
const MAX_RETRY_DELAY = 5_000;
const PING_INTERVAL = 20_000;
const PONG_TIMEOUT = 10_000;

/** How long to wait before the nth try. It doubles, with some chance so that many browsers do not come at once. */
export function retryDelay(attempt: number, random: number): number {
  return Math.min(MAX_RETRY_DELAY, FIRST_RETRY_DELAY * 2 ** attempt) * (0.75 + random / 2);
}

export class LiveSocket {
  private wire: Wire | null = null;
  private topics = new Map<string, Topic>();
  private watchers = new Set<(state: ConnectionState) => void>();
  private currentState: ConnectionState = "connecting";
  private attempt = 0;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private pingTimer: ReturnType<typeof setInterval> | undefined;
  private pongTimer: ReturnType<typeof setTimeout> | undefined;
  private pingedAt: number | null = null;
  private closed = false;
  private readonly options: SocketOptions;

  constructor(options: SocketOptions) {
    this.options = options;
  }

  get state(): ConnectionState {
    return this.currentState;
  }

  /** For how many milliseconds a ping has had no answer; 0 when none waits. */
  get unansweredFor(): number {
    return this.pingedAt === null ? 0 : Date.now() - this.pingedAt;
  }

  start(): void {
    this.closed = false;
    if (this.wire === null) this.connect();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.retryTimer);
    this.disconnect();
  }

  /** Tries at once instead of waiting for the next retry. */
  retryNow(): void {
    if (this.currentState !== "reconnecting" || this.wire !== null) return;
    clearTimeout(this.retryTimer);
    this.connect();
  }

  watch(watcher: (state: ConnectionState) => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /**
   * Listens to a topic. A `durable` topic keeps its event numbers across restarts of the gateway and is resumed by
   * number. The others start to count again with every gateway, so after a break the listener gets `resync`.
   */
  subscribe(name: string, listener: TopicListener, options: { durable?: boolean; after?: number } = {}): () => void {
    const known = this.topics.get(name);
    const topic = known ?? {
      listeners: new Set(),
      durable: options.durable ?? false,
      seq: options.after ?? null,
      broken: false,
    };
    topic.listeners.add(listener);
    if (known === undefined) {
      this.topics.set(name, topic);
      if (this.currentState === "live") this.requestTopic(name, topic);
    } else if (topic.seq !== null) {
      listener.subscribed?.(topic.seq);
    }
    return () => {
      topic.listeners.delete(listener);
      if (topic.listeners.size > 0 || this.topics.get(name) !== topic) return;
      this.topics.delete(name);
      if (this.currentState === "live") this.send({ type: "unsubscribe", topic: name });
    };
  }

  private requestTopic(name: string, topic: Topic): void {
    const resumes = topic.durable && topic.seq !== null;
    this.send({ type: "subscribe", topic: name, ...(resumes ? { after: topic.seq } : {}) });
  }

  private send(message: object): void {
    this.wire?.send(JSON.stringify(message));
  }

  private setState(state: ConnectionState): void {
    if (state === this.currentState) return;
    this.currentState = state;
    for (const watcher of this.watchers) watcher(state);
  }

  private connect(): void {
    const wire = this.options.open();
    this.wire = wire;
    let opened = false;
    wire.onopen = () => {
      opened = true;
      this.attempt = 0;
      this.setState("live");
      for (const [name, topic] of this.topics) this.requestTopic(name, topic);
      this.pingTimer = setInterval(() => this.ping(), this.options.pingInterval ?? PING_INTERVAL);
    };
    wire.onmessage = (event) => {
      if (typeof event.data === "string") this.handle(JSON.parse(event.data) as Message);
    };
    wire.onclose = (event) => {
      if (this.wire !== wire) return;
      this.disconnect();
      if (this.closed) return;
      if (event.code === SIGNED_OUT) return this.setState("signed-out");
      for (const topic of this.topics.values()) topic.broken = true;
      this.setState("reconnecting");
      void this.scheduleRetry(opened);
    };
  }

  /** A socket that never opened may have been refused. A browser does not say whether it was, or the gateway is down. */
  private async scheduleRetry(wasOpen: boolean): Promise<void> {
    if (!wasOpen) {
      const signedIn = await this.options.isSignedIn().catch(() => true);
      if (this.closed) return;
      if (!signedIn) return this.setState("signed-out");
    }
    const delay = retryDelay(this.attempt++, (this.options.random ?? Math.random)());
    this.retryTimer = setTimeout(() => this.connect(), delay);
  }

  private disconnect(): void {
    clearInterval(this.pingTimer);
    this.endPing();
    const wire = this.wire;
    this.wire = null;
    wire?.close();
  }

  /** A dead connection is detected by the pong that does not come. */
  private ping(): void {
    this.send({ type: "ping" });
    this.pingedAt ??= Date.now();
    this.pongTimer ??= setTimeout(() => this.wire?.onclose?.({ code: 1006 }), PONG_TIMEOUT);
  }

  private endPing(): void {
    clearTimeout(this.pongTimer);
    this.pongTimer = undefined;
    this.pingedAt = null;
  }

  private handle(message: Message): void {
    if (message.type === "pong") {
      this.endPing();
      return;
    }
    const topic = message.topic === undefined ? undefined : this.topics.get(message.topic);
    if (topic === undefined) return;
    const seq = message.seq ?? 0;
    switch (message.type) {
      case "subscribed": {
        const missed = topic.broken && !(topic.durable && topic.seq !== null);
        topic.broken = false;
        topic.seq = seq;
        for (const listener of topic.listeners) {
          if (missed) listener.resync?.(seq);
          else listener.subscribed?.(seq);
        }
        return;
      }
      case "resync":
        topic.broken = false;
        topic.seq = seq;
        for (const listener of topic.listeners) listener.resync?.(seq);
        return;
      case "event":
        if (topic.seq !== null && seq <= topic.seq) return;
        topic.seq = seq;
        for (const listener of topic.listeners) listener.event?.(message.data, seq);
        return;
      case "delta":
        for (const listener of topic.listeners) listener.delta?.(message.data);
        return;
      case "error": {
        const problem = { code: message.code ?? "", message: message.message ?? "", hint: "" };
        for (const listener of topic.listeners) listener.refused?.(problem);
      }
    }
  }
}
