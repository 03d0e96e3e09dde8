import { useCallback, useEffect, useRef, useState } from "react";
import type { SessionEvent, SessionEvents, Streaming } from "../../../client/api";
import { problemOf, request, type Problem } from "../../../client/http";
import { useTopic } from "../../shell/live";
import { hear, NOTHING, readPage, type Heard, type Held, type Stream } from "./events.logic";

const PIECE = 400;
// A hidden page draws no frames, but hears; what it heard is there when it is looked at.
const UNSEEN = 250;

export interface SessionHeard {
  /** Durable events that are loaded, oldest first: the newest always, older ones as they are asked for. */
  events: readonly SessionEvent[];
  /** What is being said now, by kind and id. */
  streams: ReadonlyMap<string, Stream>;
  /** The drawn names of messages that were seen coming, by their number. */
  seen: ReadonlyMap<number, string>;
  loaded: boolean;
  /** Whether there are older ones. */
  older: boolean;
  loadOlder: () => void;
  problem: Problem | null;
  reload: () => void;
}

/** What happened in a session, and what happens while it is shown. What comes within a frame is drawn at once. */
export function useSessionEvents(id: string): SessionHeard {
  const [held, setHeld] = useState<Held>(NOTHING);
  const [loaded, setLoaded] = useState(false);
  const [older, setOlder] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const waiting = useRef<Heard[]>([]);
  const frame = useRef<() => void>(undefined);
  const asking = useRef(false);
  const path = `/v1/sessions/${encodeURIComponent(id)}/events?limit=${PIECE}`;

  const flush = useCallback(() => {
    frame.current = undefined;
    const heard = waiting.current;
    waiting.current = [];
    setHeld((before) => hear(before, heard));
  }, []);
  const soon = useCallback(
    (heard: Heard) => {
      waiting.current.push(heard);
      if (frame.current !== undefined) return;
      if (document.hidden) {
        const timer = setTimeout(flush, UNSEEN);
        frame.current = () => clearTimeout(timer);
      } else {
        const asked = requestAnimationFrame(flush);
        frame.current = () => cancelAnimationFrame(asked);
      }
    },
    [flush],
  );
  useEffect(() => {
    const changed = () => {
      if (frame.current === undefined) return;
      frame.current();
      flush();
    };
    document.addEventListener("visibilitychange", changed);
    return () => {
      document.removeEventListener("visibilitychange", changed);
      frame.current?.();
      frame.current = undefined;
    };
  }, [flush]);

  const load = useCallback(
    async (anew: boolean) => {
      try {
        const page = await request<SessionEvents>(path);
        setHeld((before) => {
          // What lies between what was held and this page may be more than one page: begin again from the end.
          const joins = !anew && (before.events.length === 0 || (page.events[0]?.seq ?? 0) <= (before.events.at(-1)?.seq ?? 0) + 1);
          if (!joins || before.events.length === 0) setOlder(page.events.length === PIECE);
          return readPage(joins ? before : NOTHING, page.events, page.streaming);
        });
        setProblem(null);
        setLoaded(true);
      } catch (error) {
        setProblem(problemOf(error));
      }
    },
    [path],
  );
  const first = held.events[0]?.seq ?? 0;
  const loadOlder = useCallback(() => {
    if (asking.current || first === 0) return;
    asking.current = true;
    request<SessionEvents>(`${path}&before=${first}`)
      .then((page) => {
        setOlder(page.events.length === PIECE);
        setHeld((before) => readPage(before, page.events, null));
      })
      .catch((error: unknown) => setProblem(problemOf(error)))
      .finally(() => {
        asking.current = false;
      });
  }, [path, first]);
  useTopic(
    `session:${id}`,
    {
      subscribed: () => void load(false),
      resync: () => void load(true),
      event: (data) => soon({ event: data as SessionEvent }),
      delta: (data) => soon({ delta: data as Streaming }),
    },
    { durable: true },
  );
  const gap = held.loose.length > 0;
  useEffect(() => {
    if (gap) void load(false);
  }, [gap, load]);
  const reload = useCallback(() => void load(false), [load]);
  return { events: held.events, streams: held.streams, seen: held.seen, loaded, older, loadOlder, problem, reload };
}
