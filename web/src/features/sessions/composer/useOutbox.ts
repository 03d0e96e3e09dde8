import { useCallback, useEffect, useRef, useState } from "react";
import { RequestFailed, request } from "../../../client/http";
import { useConnection } from "../../../data/connection";
import { bodyOf, isUncertain, type OutgoingPrompt, parse, serialize } from "./outbox.logic";

const RETRY_INTERVAL = 3_000;
/** A prompt that takes longer is shown as not sent yet. */
const SLOW_AFTER = 1_000;
const keyOf = (session: string) => `freehold.outbox.${session}`;

function writeOutbox(session: string, prompts: readonly OutgoingPrompt[]): void {
  const text = serialize(prompts);
  try {
    if (text === null) localStorage.removeItem(keyOf(session));
    else localStorage.setItem(keyOf(session), text);
  } catch {
    return;
  }
}

export interface Outbox {
  /** Prompts that the gateway has not accepted yet. */
  unsent: readonly OutgoingPrompt[];
  send: (prompt: OutgoingPrompt) => void;
  /** Stops trying. The prompt may have arrived nevertheless. */
  takeBack: (prompt: OutgoingPrompt) => void;
}

/**
 * Sends prompts one after the other. A prompt that the gateway does not answer is sent again with the same key, also
 * after a reload. A prompt that it refuses is handed back.
 */
export function useOutbox(
  session: string,
  on: { accepted: (prompt: OutgoingPrompt) => void; refused: (prompt: OutgoingPrompt, error: unknown) => void },
): Outbox {
  const prompts = useRef<readonly OutgoingPrompt[] | null>(null);
  prompts.current ??= parse(localStorage.getItem(keyOf(session)));
  const [unsent, setUnsent] = useState<readonly OutgoingPrompt[]>(prompts.current);
  const running = useRef(false);
  const latest = useRef(on);
  useEffect(() => {
    latest.current = on;
  });
  const live = useConnection() === "live";

  const store = useCallback(
    (next: readonly OutgoingPrompt[]) => {
      prompts.current = next;
      writeOutbox(session, next);
      setUnsent((before) => before.filter((one) => next.includes(one)));
    },
    [session],
  );

  const deliver = useCallback(async () => {
    if (running.current) return;
    running.current = true;
    try {
      for (let prompt = prompts.current?.[0]; prompt !== undefined; prompt = prompts.current?.[0]) {
        const current = prompt;
        const slow = setTimeout(() => setUnsent(prompts.current ?? []), SLOW_AFTER);
        try {
          await request(`/v1/sessions/${encodeURIComponent(session)}/prompt`, {
            method: "POST",
            body: bodyOf(current),
          });
          store((prompts.current ?? []).filter((one) => one !== current));
          latest.current.accepted(current);
        } catch (error) {
          if (error instanceof RequestFailed && isUncertain(error.status, error.problem.code)) {
            setUnsent(prompts.current ?? []);
            return;
          }
          store((prompts.current ?? []).filter((one) => one !== current));
          latest.current.refused(current, error);
        } finally {
          clearTimeout(slow);
        }
      }
    } finally {
      running.current = false;
    }
  }, [session, store]);

  const hasUnsent = unsent.length > 0;
  useEffect(() => {
    if (!live) return;
    void deliver();
    if (!hasUnsent) return;
    const timer = setInterval(() => void deliver(), RETRY_INTERVAL);
    return () => clearInterval(timer);
  }, [live, hasUnsent, deliver]);

  return {
    unsent,
    send: (prompt) => {
      store([...(prompts.current ?? []), prompt]);
      void deliver();
    },
    takeBack: (prompt) => store((prompts.current ?? []).filter((one) => one !== prompt)),
  };
}
