/** The one socket to the gateway: many topics, taken up again where they were left. Knows no React. */

export type Connection = "connecting" | "live" | "reconnecting" | "signed-out";

export interface Listener {
  event?: (data: unknown, seq: number) => void;
  delta?: (data: unknown) => void;
  /** Something was missed that cannot be had again here: list anew. */
  resync?: (seq: number) => void;
  /** The subscription stands, from this number on. */
  subscribed?: (seq: number) => void;
}

/** The part of a WebSocket that is used, so that a test can be the other side. */
export interface Wire {
  send(text: string): void;
  close(): void;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number }) => void) | null;
}

export interface SocketOptions {
  open: () => Wire;
  /** Whether the session still lives; throws when nobody answers. */
  signedIn: () => Promise<boolean>;
  random?: () => number;
}

interface Topic {
  listeners: Set<Listener>;
  durable: boolean;
  seq: number | null;
  /** Whether what came before the last break may have been missed. */
  broken: boolean;
}

interface Word {
  type: string;
  topic?: string;
  seq?: number;
  data?: unknown;
}

export const SIGNED_OUT = 4401;
const FIRST_WAIT = 250;
const LONGEST_WAIT = 5_000;
const PING_EVERY = 20_000;
const PATIENCE = 10_000;

/** How long to wait before the nth try: doubling, with some chance in it so that many browsers do not come at once. */
export function waitBefore(attempt: number, random: number): number {
  return Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** attempt) * (0.75 + random / 2);
}

export class LiveSocket {
  private wire: Wire | null = null;
  private topics = new Map<string, Topic>();
  private watchers = new Set<(state: Connection) => void>();
  private state_: Connection = "connecting";
  private attempt = 0;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private pulse: ReturnType<typeof setInterval> | undefined;
  private overdue: ReturnType<typeof setTimeout> | undefined;
  private closed = false;

  constructor(private readonly options: SocketOptions) {}

  get state(): Connection {
    return this.state_;
  }

  start(): void {
    this.closed = false;
    if (this.wire === null) this.connect();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.retry);
    this.drop();
  }

  /** Try now instead of when the wait is over. */
  hurry(): void {
    if (this.state_ !== "reconnecting" || this.wire !== null) return;
    clearTimeout(this.retry);
    this.connect();
  }

  watch(watcher: (state: Connection) => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /**
   * Listen to a topic. A `durable` one keeps its numbers for good and is resumed by them; the others begin to count
   * anew with every gateway, so after a break they are listed anew (`resync`).
   */
  subscribe(name: string, listener: Listener, how: { durable?: boolean; after?: number } = {}): () => void {
    const known = this.topics.get(name);
    const topic = known ?? { listeners: new Set(), durable: how.durable ?? false, seq: how.after ?? null, broken: false };
    topic.listeners.add(listener);
    if (known === undefined) {
      this.topics.set(name, topic);
      if (this.state_ === "live") this.ask(name, topic);
    } else if (topic.seq !== null) {
      listener.subscribed?.(topic.seq);
    }
    return () => {
      topic.listeners.delete(listener);
      if (topic.listeners.size > 0 || this.topics.get(name) !== topic) return;
      this.topics.delete(name);
      if (this.state_ === "live") this.say({ type: "unsubscribe", topic: name });
    };
  }

  private ask(name: string, topic: Topic): void {
    const resumes = topic.durable && topic.seq !== null;
    this.say({ type: "subscribe", topic: name, ...(resumes ? { after: topic.seq } : {}) });
  }

  private say(word: object): void {
    this.wire?.send(JSON.stringify(word));
  }

  private become(state: Connection): void {
    if (state === this.state_) return;
    this.state_ = state;
    for (const watcher of this.watchers) watcher(state);
  }

  private connect(): void {
    const wire = this.options.open();
    this.wire = wire;
    let opened = false;
    wire.onopen = () => {
      opened = true;
      this.attempt = 0;
      this.become("live");
      for (const [name, topic] of this.topics) this.ask(name, topic);
      this.pulse = setInterval(() => this.ping(), PING_EVERY);
    };
    wire.onmessage = (event) => {
      if (typeof event.data === "string") this.hear(JSON.parse(event.data) as Word);
    };
    wire.onclose = (event) => {
      if (this.wire !== wire) return;
      this.drop();
      if (this.closed) return;
      if (event.code === SIGNED_OUT) return this.become("signed-out");
      for (const topic of this.topics.values()) topic.broken = true;
      this.become("reconnecting");
      void this.again(opened);
    };
  }

  /** One that was never opened may have been refused: a browser does not tell that from a gateway that is away. */
  private async again(wasOpen: boolean): Promise<void> {
    if (!wasOpen) {
      const signedIn = await this.options.signedIn().catch(() => true);
      if (this.closed) return;
      if (!signedIn) return this.become("signed-out");
    }
    const wait = waitBefore(this.attempt++, (this.options.random ?? Math.random)());
    this.retry = setTimeout(() => this.connect(), wait);
  }

  private drop(): void {
    clearInterval(this.pulse);
    clearTimeout(this.overdue);
    this.overdue = undefined;
    const wire = this.wire;
    this.wire = null;
    wire?.close();
  }

  /** A connection that is dead without saying so is found out by the answer that does not come. */
  private ping(): void {
    this.say({ type: "ping" });
    this.overdue ??= setTimeout(() => this.wire?.onclose?.({ code: 1006 }), PATIENCE);
  }

  private hear(word: Word): void {
    if (word.type === "pong") {
      clearTimeout(this.overdue);
      this.overdue = undefined;
      return;
    }
    const topic = word.topic === undefined ? undefined : this.topics.get(word.topic);
    if (topic === undefined) return;
    const seq = word.seq ?? 0;
    switch (word.type) {
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
        for (const listener of topic.listeners) listener.event?.(word.data, seq);
        return;
      case "delta":
        for (const listener of topic.listeners) listener.delta?.(word.data);
    }
  }
}

export function browserSocket(): Wire {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  return new WebSocket(`${scheme}://${location.host}/v1/socket`) as unknown as Wire;
}
