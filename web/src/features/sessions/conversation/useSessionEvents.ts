import { useCallback, useEffect, useMemo, useRef } from "react";
import type { SessionEvent, SessionEvents, StreamingText } from "../../../client/api";
import { EVENT_PAGE, sessionEvents } from "../../../client/early";
import { type Problem, request } from "../../../client/http";
import { useTopic } from "../../../data/connection";
import { useResource } from "../../../data/resource";
import { applyMessages, EMPTY_LOG, type SessionLog, type SessionMessage, type Stream, withPage } from "./events.logic";

// A hidden page draws no frames, so it applies messages by a timer.
const HIDDEN_INTERVAL = 250;

export interface LoadedEvents {
  /** The loaded events, oldest first. The newest are always loaded, older ones on demand. */
  events: readonly SessionEvent[];
  /** The texts that are being written now. */
  streams: ReadonlyMap<string, Stream>;
  /** The keys under which messages were drawn while they were written, by the number of their event. */
  streamedKeys: ReadonlyMap<number, string>;
  loaded: boolean;
  hasOlder: boolean;
  loadOlder: () => void;
  problem: Problem | null;
  reload: () => void;
}

interface LoadedLog extends SessionLog {
  hasOlder: boolean;
}

/** What is known of the requests for one session. */
interface Loading {
  /** Messages that arrive before the first page; null afterwards. */
  early: SessionMessage[] | null;
  /** The last event before the subscription to the topic, which the first page must have; null until it is known. */
  readUpTo: number | null;
  /** After a gap in the topic the log starts again from the newest page. */
  discardHeld: boolean;
  isLoadingOlder: boolean;
}

const notLoaded = (): Loading => ({ early: [], readUpTo: null, discardHeld: false, isLoadingOlder: false });

/** The events of a session, kept up to date. Of a session that was open before, what was seen is there at once. */
export function useSessionEvents(id: string): LoadedEvents {
  const path = sessionEvents(id);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each session has its own
  const loading = useMemo(notLoaded, [id]);
  const { value, problem, reload, update, fail } = useResource<LoadedLog>(path, {
    read: (reply) => logOf(reply as SessionEvents),
    merge: (held, page) => {
      const isReplaced = held === null || loading.discardHeld || !isAdjacent(held, page);
      loading.discardHeld = false;
      const messages = loading.early ?? [];
      loading.early = null;
      const joined = withMessages(isReplaced ? page : joinLogs(held, page), messages);
      if (lastSeqOf(joined) < (loading.readUpTo ?? 0)) {
        loading.readUpTo = 0;
        queueMicrotask(reload);
      }
      return joined;
    },
    keep: newestPage,
  });
  const log = value ?? EMPTY_LOG;

  const apply = useCallback(
    (messages: readonly SessionMessage[]) => {
      if (loading.early !== null) loading.early.push(...messages);
      else update((held) => withMessages(held, messages));
    },
    [loading, update],
  );
  const receive = useMessageBatches(apply);

  const firstSeq = log.events[0]?.seq ?? 0;
  const loadOlder = useCallback(() => {
    if (loading.isLoadingOlder || firstSeq === 0) return;
    loading.isLoadingOlder = true;
    request<SessionEvents>(`${path}&before=${firstSeq}`).then(
      ({ events }) => {
        // Before the update: the transcript may ask for the next page while it is drawn.
        loading.isLoadingOlder = false;
        update((held) => ({ ...withPage(held, events, null), hasOlder: mayHaveOlder(events) }));
      },
      (error: unknown) => {
        loading.isLoadingOlder = false;
        fail(error);
      },
    );
  }, [path, firstSeq, loading, update, fail]);

  useTopic(
    `session:${id}`,
    {
      subscribed: (seq) => {
        const isFirst = loading.readUpTo === null;
        // The first page is still to come, or has every event. After a break it is read again.
        const isRead = isFirst && (loading.early !== null || lastSeqOf(log) >= seq);
        loading.readUpTo = isRead ? seq : 0;
        if (!isRead) reload();
      },
      resync: () => {
        loading.discardHeld = true;
        reload();
      },
      event: (data) => receive({ event: data as SessionEvent }),
      // A place in the queue comes as a delta too. It is shown from the session itself.
      delta: (data) => {
        if ((data as { kind: string }).kind !== "waiting") receive({ delta: data as StreamingText });
      },
    },
    { durable: true },
  );
  const hasUnmatched = log.unmatched.length > 0;
  useEffect(() => {
    if (hasUnmatched) reload();
  }, [hasUnmatched, reload]);

  return {
    events: log.events,
    streams: log.streams,
    streamedKeys: log.streamedKeys,
    loaded: value !== null,
    hasOlder: value?.hasOlder ?? false,
    loadOlder,
    problem,
    reload,
  };
}

const logOf = ({ events, streaming }: SessionEvents): LoadedLog => ({
  ...withPage(EMPTY_LOG, events, streaming),
  hasOlder: mayHaveOlder(events),
});

const lastSeqOf = (log: SessionLog): number => log.events.at(-1)?.seq ?? 0;

/** A page of long events has fewer of them than were asked for, so their number says nothing. */
const mayHaveOlder = (events: readonly SessionEvent[]): boolean => (events[0]?.seq ?? 1) > 1;

const withMessages = (log: LoadedLog, messages: readonly SessionMessage[]): LoadedLog =>
  messages.length === 0 ? log : { ...applyMessages(log, messages), hasOlder: log.hasOlder };

/** Whether no event is missing between the held log and a newer page. */
const isAdjacent = (held: LoadedLog, page: LoadedLog): boolean =>
  (page.events[0]?.seq ?? 0) <= (held.events.at(-1)?.seq ?? 0) + 1;

function joinLogs(held: LoadedLog, page: LoadedLog): LoadedLog {
  const hasOlder = held.events.length === 0 ? page.hasOlder : held.hasOlder;
  const joined = withPage(held, page.events, [...page.streams.values()]);
  return joined === held && hasOlder === held.hasOlder ? held : { ...joined, hasOlder };
}

/** What is kept of a session that is left. Older events are loaded again on demand. */
const newestPage = (log: LoadedLog): LoadedLog =>
  log.events.length <= EVENT_PAGE ? log : { ...log, events: log.events.slice(-EVENT_PAGE), hasOlder: true };

/** Collects messages and hands on those of one frame together. */
function useMessageBatches(apply: (messages: readonly SessionMessage[]) => void): (message: SessionMessage) => void {
  const waiting = useRef<SessionMessage[]>([]);
  const cancel = useRef<(() => void) | null>(null);
  const flush = useCallback(() => {
    cancel.current = null;
    const messages = waiting.current;
    waiting.current = [];
    apply(messages);
  }, [apply]);
  useEffect(() => {
    const onVisibilityChange = () => {
      if (cancel.current === null) return;
      cancel.current();
      flush();
    };
    document.addEventListener("visibilitychange", onVisibilityChange);
    return () => {
      document.removeEventListener("visibilitychange", onVisibilityChange);
      cancel.current?.();
      cancel.current = null;
      // They are of the session that was left.
      waiting.current = [];
    };
  }, [flush]);
  return useCallback(
    (message) => {
      waiting.current.push(message);
      if (cancel.current !== null) return;
      if (document.hidden) {
        const timer = setTimeout(flush, HIDDEN_INTERVAL);
        cancel.current = () => clearTimeout(timer);
      } else {
        const frame = requestAnimationFrame(flush);
        cancel.current = () => cancelAnimationFrame(frame);
      }
    },
    [flush],
  );
}
