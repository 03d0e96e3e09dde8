import { useCallback, useMemo, useState } from "react";
import type { SessionEvent, SessionEvents } from "../../../client/api";
import { problemOf, request, type Problem } from "../../../client/http";
import { useTopic } from "../../shell/live";
import type { Delta } from "./transcript.logic";

const PIECE = 1_000;
const MOST_PIECES = 10;

async function readAll(id: string): Promise<SessionEvent[]> {
  const all: SessionEvent[] = [];
  let after: number | null = 0;
  for (let piece = 0; piece < MOST_PIECES && after !== null; piece++) {
    const page: SessionEvents = await request<SessionEvents>(`/v1/sessions/${encodeURIComponent(id)}/events?after=${after}&limit=${PIECE}`);
    all.push(...page.events);
    after = page.next;
  }
  return all;
}

export interface Heard {
  /** Durable events, oldest first. */
  events: readonly SessionEvent[];
  /** What still streams, by kind and id. */
  streaming: ReadonlyMap<string, Delta>;
  problem: Problem | null;
  reload: () => void;
}

/** What happened in a session, and what happens while it is shown. */
export function useSessionEvents(id: string): Heard {
  const [held, setHeld] = useState<ReadonlyMap<number, SessionEvent>>(new Map());
  const [streaming, setStreaming] = useState<ReadonlyMap<string, Delta>>(new Map());
  const [problem, setProblem] = useState<Problem | null>(null);
  const add = useCallback((more: readonly SessionEvent[]) => setHeld((before) => new Map([...before, ...more.map((event) => [event.seq, event] as const)])), []);
  const reload = useCallback(() => {
    readAll(id)
      .then((all) => {
        add(all);
        setProblem(null);
      })
      .catch((error: unknown) => setProblem(problemOf(error)));
  }, [id, add]);
  useTopic(
    `session:${id}`,
    {
      subscribed: reload,
      resync: reload,
      event: (data) => {
        const event = data as SessionEvent;
        add([event]);
        if (event.kind === "turn.ended") setStreaming(new Map());
      },
      delta: (data) => {
        const delta = data as Delta;
        const key = `${delta.kind} ${delta.id}`;
        setStreaming((before) => new Map(before).set(key, { ...delta, text: (before.get(key)?.text ?? "") + delta.text }));
      },
    },
    { durable: true },
  );
  const events = useMemo(() => [...held.values()].sort((a, b) => a.seq - b.seq), [held]);
  return { events, streaming, problem, reload };
}
