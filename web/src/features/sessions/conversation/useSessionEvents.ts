import { useCallback, useEffect, useRef } from "react";
import type { SessionEvent, SessionEvents, StreamingText } from "../../../client/api";
import { type Problem, request } from "../../../client/http";
import { useTopic } from "../../../data/connection";
import { useResource } from "../../../data/resource";
import { applyMessages, EMPTY_LOG, type SessionLog, type SessionMessage, type Stream, withPage } from "./events.logic";

const PAGE = 400;
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

/** The events of a session, kept up to date. */
export function useSessionEvents(id: string): LoadedEvents {
  const path = `/v1/sessions/${encodeURIComponent(id)}/events?limit=${PAGE}`;
  /** Messages that arrive before the first page. */
  const early = useRef<SessionMessage[] | null>([]);
  /** After a gap in the topic the log starts again from the newest page. */
  const discardHeld = useRef(false);
  const { value, problem, reload, update, fail } = useResource<LoadedLog>(path, {
    read: (reply) => logOf(reply as SessionEvents),
    merge: (held, page) => {
      const isReplaced = held === null || discardHeld.current || !isAdjacent(held, page);
      discardHeld.current = false;
      const messages = early.current ?? [];
      early.current = null;
      return withMessages(isReplaced ? page : joinLogs(held, page), messages);
    },
  });
  const log = value ?? EMPTY_LOG;

  const apply = useCallback(
    (messages: readonly SessionMessage[]) => {
      if (early.current !== null) early.current.push(...messages);
      else update((held) => withMessages(held, messages));
    },
    [update],
  );
  const receive = useMessageBatches(apply);

  const isLoadingOlder = useRef(false);
  const firstSeq = log.events[0]?.seq ?? 0;
  const loadOlder = useCallback(() => {
    if (isLoadingOlder.current || firstSeq === 0) return;
    isLoadingOlder.current = true;
    request<SessionEvents>(`${path}&before=${firstSeq}`).then(
      ({ events }) => {
        // Before the update: the transcript may ask for the next page while it is drawn.
        isLoadingOlder.current = false;
        update((held) => ({ ...withPage(held, events, null), hasOlder: mayHaveOlder(events) }));
      },
      (error: unknown) => {
        isLoadingOlder.current = false;
        fail(error);
      },
    );
  }, [path, firstSeq, update, fail]);

  useTopic(
    `session:${id}`,
    {
      subscribed: reload,
      resync: () => {
        discardHeld.current = true;
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

/** A page of long events has fewer of them than were asked for, so their number says nothing. */
const mayHaveOlder = (events: readonly SessionEvent[]): boolean => (events[0]?.seq ?? 1) > 1;

const withMessages = (log: LoadedLog, messages: readonly SessionMessage[]): LoadedLog =>
  messages.length === 0 ? log : { ...applyMessages(log, messages), hasOlder: log.hasOlder };

/** Whether no event is missing between the held log and a newer page. */
const isAdjacent = (held: LoadedLog, page: LoadedLog): boolean =>
  (page.events[0]?.seq ?? 0) <= (held.events.at(-1)?.seq ?? 0) + 1;

function joinLogs(held: LoadedLog, page: LoadedLog): LoadedLog {
  const hasOlder = held.events.length === 0 ? page.hasOlder : held.hasOlder;
  return { ...withPage(held, page.events, [...page.streams.values()]), hasOlder };
}

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
