import { useContext, useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { afterPaint } from "../client/afterPaint";
import { arrivedReply, request } from "../client/http";
import { RELOAD, Resource, type ResourceState } from "../client/resource";
import { useTopic } from "./connection";
import { KeptValuesContext } from "./keptValues";

export { RELOAD };

export interface ResourceOptions<T> {
  /** The topic whose events concern the value. The value is fetched again after a gap in the topic. */
  topic?: string;
  /** See `LiveSocket.subscribe`. */
  durable?: boolean;
  /** Whether an event concerns the value at all. */
  concerns?: (event: unknown) => boolean;
  /** The value after an event, or RELOAD. Without it every event reloads. Must be idempotent. */
  apply?: (value: T, event: unknown) => T | typeof RELOAD;
  /** Combines a fetched value with the one that is held, such as a page with older pages. */
  merge?: (held: T | null, fetched: T) => T;
  /** Turns the reply into the value. */
  read?: (reply: unknown) => T;
  /** Milliseconds to wait after an event before reloading. */
  delay?: number;
  /** Reload after this many milliseconds again and again. */
  pollInterval?: number;
  /**
   * What is kept of the value when the path is left. When it is opened again, that is the value until the reply is
   * there. Without it nothing is kept.
   */
  keep?: (value: T) => T;
  /** Asked for when the page is painted: what it is opened for does not wait for this. */
  isSecondary?: boolean;
}

export interface ResourceHandle<T> extends ResourceState<T> {
  reload: () => void;
  /** Replaces the value, for example with the reply of an action. */
  set: (value: T) => void;
  /** Changes the value, for example to append an older page. */
  update: (change: (value: T) => T) => void;
  /** Handles the reply of an action as if the topic had sent it. */
  receive: (event: unknown) => void;
  /** Shows a problem and keeps the value. */
  fail: (error: unknown) => void;
}

const NOTHING: ResourceState<never> = { value: null, problem: null };
const ignore = () => undefined;
const noListener = () => ignore;
const noState = () => NOTHING;

/**
 * The reply of `path`, kept up to date by a topic. With `path` null nothing is fetched. While it is fetched again the
 * last value stays.
 */
export function useResource<T>(path: string | null, options: ResourceOptions<T> = {}): ResourceHandle<T> {
  const latest = useRef(options);
  useEffect(() => {
    latest.current = options;
  });
  const delay = options.delay ?? 0;
  const isKept = options.keep !== undefined;
  const keptValues = useContext(KeptValuesContext);
  const resource = useMemo(() => {
    if (path === null) return null;
    const read = (reply: unknown) => (latest.current.read === undefined ? (reply as T) : latest.current.read(reply));
    // Drawn with the component. A change of what is drawn would block the page while it is drawn.
    const firstValue = () => {
      const reply = arrivedReply(path);
      return reply === null ? null : read(reply);
    };
    return new Resource<T>({
      first: ((isKept ? keptValues?.get(path) : null) as T | null | undefined) ?? firstValue(),
      fetch: async () => read(await request<unknown>(path)),
      merge: (held, fetched) => latest.current.merge?.(held, fetched) ?? fetched,
      apply: (value, event) => (latest.current.apply === undefined ? RELOAD : latest.current.apply(value, event)),
      delay,
    });
  }, [path, delay, isKept, keptValues]);

  const isSecondary = options.isSecondary ?? false;
  useEffect(() => {
    if (resource === null) return;
    const cancel = isSecondary ? afterPaint(resource.reload) : resource.reload();
    return () => {
      cancel?.();
      resource.stop();
    };
  }, [resource, isSecondary]);

  useTopic(
    resource === null ? null : (options.topic ?? null),
    {
      event: (data) => {
        if (latest.current.concerns?.(data) !== false) resource?.receive(data);
      },
      // One that is asked for later is asked for once.
      subscribed: () => {
        if (!isSecondary || resource?.wasAsked) resource?.reload();
      },
      resync: () => resource?.reload(),
    },
    { durable: options.durable ?? false },
  );

  const { pollInterval } = options;
  useEffect(() => {
    if (resource === null || pollInterval === undefined) return;
    const timer = setInterval(resource.reload, pollInterval);
    return () => clearInterval(timer);
  }, [resource, pollInterval]);

  const state = useSyncExternalStore<ResourceState<T>>(resource?.subscribe ?? noListener, resource?.state ?? noState);
  useEffect(() => {
    if (path === null || keptValues === null || !isKept) return;
    // What is refused may be gone for good, as a session that was deleted.
    if (state.problem !== null) keptValues.delete(path);
    else if (state.value !== null) keptValues.set(path, latest.current.keep?.(state.value));
  }, [path, keptValues, isKept, state]);
  return useMemo(
    () => ({
      ...state,
      reload: resource?.reload ?? ignore,
      set: resource?.set ?? ignore,
      update: resource?.update ?? ignore,
      receive: resource?.receive ?? ignore,
      fail: resource?.fail ?? ignore,
    }),
    [resource, state],
  );
}

/** Whether an event of the timeline has a kind that begins with one of these. */
export function hasKind(event: unknown, ...prefixes: string[]): boolean {
  const kind = String((event as { kind?: unknown }).kind);
  return prefixes.some((prefix) => kind.startsWith(prefix));
}
