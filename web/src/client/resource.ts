/** A value of the gateway that is fetched once and then kept up to date by events. Knows no React. */

import { type Problem, problemOf } from "./http";
import { isSameValue } from "./sameValue";

/** The answer of `apply` when an event does not carry enough to update the value: fetch it again. */
export const RELOAD = Symbol("reload");

/** Event reloads wait until events pause for `delay`, but never longer than this many times `delay`. */
const MAX_DELAYS = 4;

export interface ResourceOptions<T> {
  fetch: () => Promise<T>;
  /** The value until the first reply, when one is known from before. */
  first?: T | null;
  /** Combines what was fetched with what is held. Without it the fetched value replaces the held one. */
  merge?: (held: T | null, fetched: T) => T;
  /**
   * The value after an event, or RELOAD. It must be idempotent: events that arrive while a request is in flight are
   * applied again to the reply. Without it every event reloads.
   */
  apply?: (value: T, event: unknown) => T | typeof RELOAD;
  /** Milliseconds to wait after an event before reloading, so that a burst of events costs one request. */
  delay?: number;
}

export interface ResourceState<T> {
  /** Null until the first reply, unless one is known from before. A failed reload keeps the last value. */
  value: T | null;
  problem: Problem | null;
}

export class Resource<T> {
  private current: ResourceState<T>;
  private readonly listeners = new Set<() => void>();
  private requests = 0;
  /** Replies of the request with this number and of older ones are ignored. */
  private settled = 0;
  private inFlight = false;
  private startedNow = false;
  private stale = false;
  private received: unknown[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private firstEventAt: number | null = null;

  constructor(private readonly options: ResourceOptions<T>) {
    this.current = { value: options.first ?? null, problem: null };
  }

  readonly state = (): ResourceState<T> => this.current;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Whether it was ever fetched. */
  get wasAsked(): boolean {
    return this.requests > 0;
  }

  /** Fetches the value again. Several calls in the same task make one request. */
  readonly reload = (): void => {
    if (this.startedNow) return;
    this.startedNow = true;
    queueMicrotask(() => {
      this.startedNow = false;
    });
    this.cancelTimer();
    this.request();
  };

  /** Takes an event of the topic, or the reply of an action that has the same form. */
  readonly receive = (event: unknown): void => {
    if (this.inFlight) this.received.push(event);
    if (this.current.value === null) {
      if (!this.inFlight) this.request();
      return;
    }
    const next = this.apply(this.current.value, event);
    if (next === RELOAD) this.reloadSoon();
    else this.become({ value: next, problem: this.current.problem });
  };

  /** Replaces the value with the reply of an action. A request that is in flight is ignored: it may be older. */
  readonly set = (value: T): void => {
    this.settled = this.requests;
    this.inFlight = false;
    this.become({ value, problem: null });
  };

  /** Changes the value in place, for example to append an older page. */
  readonly update = (change: (value: T) => T): void => {
    if (this.current.value !== null) this.become({ value: change(this.current.value), problem: null });
  };

  readonly fail = (error: unknown): void => this.become({ value: this.current.value, problem: problemOf(error) });

  /** Ignores replies that are still to come. `reload` starts it again. */
  readonly stop = (): void => {
    this.settled = this.requests;
    this.inFlight = false;
    this.startedNow = false;
    this.cancelTimer();
  };

  private apply(value: T, event: unknown): T | typeof RELOAD {
    return this.options.apply === undefined ? RELOAD : this.options.apply(value, event);
  }

  private become(state: ResourceState<T>): void {
    if (state.value === this.current.value && state.problem === this.current.problem) return;
    this.current = state;
    for (const listener of this.listeners) listener();
  }

  private request(): void {
    const mine = ++this.requests;
    this.inFlight = true;
    this.stale = false;
    this.received = [];
    this.options.fetch().then(
      (fetched) => {
        // On a slow network the first reply is shown although a later request is in flight.
        if (mine > this.settled && (mine === this.requests || this.current.value === null)) this.finish(fetched, mine);
      },
      (error: unknown) => {
        if (mine !== this.requests || mine <= this.settled) return;
        this.inFlight = false;
        this.fail(error);
      },
    );
  }

  private finish(fetched: T, request: number): void {
    this.settled = request;
    const isLast = request === this.requests;
    if (isLast) this.inFlight = false;
    let value = this.options.merge === undefined ? fetched : this.options.merge(this.current.value, fetched);
    for (const event of this.received) {
      const next = this.apply(value, event);
      if (next === RELOAD) this.stale = true;
      else value = next;
    }
    // Nothing is drawn again for a reply that says what is known.
    this.become({ value: isSameValue(this.current.value, value) ? this.current.value : value, problem: null });
    if (isLast && this.stale) this.reloadSoon();
  }

  private reloadSoon(): void {
    const delay = this.options.delay ?? 0;
    // A request that is in flight may have read the value before the event: reload once more when it has ended.
    if (this.inFlight) this.stale = true;
    else if (delay === 0) this.request();
    else {
      const now = Date.now();
      this.firstEventAt ??= now;
      const wait = Math.min(delay, Math.max(0, this.firstEventAt + MAX_DELAYS * delay - now));
      clearTimeout(this.timer);
      this.timer = setTimeout(() => {
        this.cancelTimer();
        this.request();
      }, wait);
    }
  }

  private cancelTimer(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.firstEventAt = null;
  }
}
