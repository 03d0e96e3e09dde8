import { useCallback, useEffect, useRef, useState } from "react";
import { request, RequestFailed } from "../../../client/http";
import { useConnection } from "../../shell/live";
import { bodyOf, isUncertain, kept, readKept, type Letter } from "./outbox.logic";

const AGAIN_AFTER = 3_000;
const SLOW_AFTER = 1_000;
const keyOf = (id: string) => `freehold.outbox.${id}`;

function write(id: string, letters: readonly Letter[]): void {
  const text = kept(letters);
  try {
    if (text === null) localStorage.removeItem(keyOf(id));
    else localStorage.setItem(keyOf(id), text);
  } catch {
    return;
  }
}

export interface Outbox {
  /** Those that wait for the gateway, or take their time. */
  stuck: readonly Letter[];
  send: (letter: Letter) => void;
  /** No more tries; it may have arrived all the same. */
  takeBack: (letter: Letter) => void;
}

/**
 * Prompts on their way, one after the other. What the gateway does not answer is tried again by itself, after a reload
 * too, with the same key; what it refuses is given back.
 */
export function useOutbox(id: string, on: { taken: (letter: Letter) => void; refused: (letter: Letter, error: unknown) => void }): Outbox {
  const letters = useRef<readonly Letter[] | null>(null);
  letters.current ??= readKept(localStorage.getItem(keyOf(id)));
  const [stuck, setStuck] = useState<readonly Letter[]>(letters.current);
  const running = useRef(false);
  const latest = useRef(on);
  useEffect(() => {
    latest.current = on;
  });
  const live = useConnection() === "live";

  const put = useCallback(
    (next: readonly Letter[]) => {
      letters.current = next;
      write(id, next);
      setStuck((before) => before.filter((one) => next.includes(one)));
    },
    [id],
  );

  const deliver = useCallback(async () => {
    if (running.current) return;
    running.current = true;
    try {
      for (let letter = letters.current?.[0]; letter !== undefined; letter = letters.current?.[0]) {
        const mine = letter;
        const slow = setTimeout(() => setStuck(letters.current ?? []), SLOW_AFTER);
        try {
          await request(`/v1/sessions/${encodeURIComponent(id)}/prompt`, { method: "POST", body: bodyOf(mine) });
          put((letters.current ?? []).filter((one) => one !== mine));
          latest.current.taken(mine);
        } catch (error) {
          if (error instanceof RequestFailed && isUncertain(error.status)) {
            setStuck(letters.current ?? []);
            return;
          }
          put((letters.current ?? []).filter((one) => one !== mine));
          latest.current.refused(mine, error);
        } finally {
          clearTimeout(slow);
        }
      }
    } finally {
      running.current = false;
    }
  }, [id, put]);

  const waits = stuck.length > 0;
  useEffect(() => {
    if (!live) return;
    void deliver();
    if (!waits) return;
    const timer = setInterval(() => void deliver(), AGAIN_AFTER);
    return () => clearInterval(timer);
  }, [live, waits, deliver]);

  return {
    stuck,
    send: (letter) => {
      put([...(letters.current ?? []), letter]);
      void deliver();
    },
    takeBack: (letter) => put((letters.current ?? []).filter((one) => one !== letter)),
  };
}
