import { useCallback, useEffect, useRef, useState } from "react";
import { problemOf, request, type Problem } from "../../client/http";
import { useTopic } from "./live";

export interface LiveRows<T> {
  /** Null until they are known for the first time. */
  rows: readonly T[] | null;
  problem: Problem | null;
  reload: () => void;
  /** Take what an action answered as if the topic had told it. */
  take: (data: unknown) => void;
}

/**
 * Rows that are asked for whole and then kept up by a topic. `merge` must bear being told the same thing twice: what
 * is heard while an answer is under way is told again over it, so that nothing is lost between the two.
 */
export function useLiveRows<T>(path: string, topic: string, read: (answer: unknown) => readonly T[], merge: (rows: readonly T[], data: unknown) => readonly T[]): LiveRows<T> {
  const [rows, setRows] = useState<readonly T[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const how = useRef({ read, merge });
  useEffect(() => {
    how.current = { read, merge };
  });
  const asked = useRef(0);
  const heard = useRef<unknown[]>([]);
  const take = useCallback((data: unknown) => {
    heard.current.push(data);
    setRows((before) => (before === null ? null : how.current.merge(before, data)));
  }, []);
  const reload = useCallback(() => {
    const mine = ++asked.current;
    heard.current = [];
    request<unknown>(path)
      .then((answer) => {
        if (mine !== asked.current) return;
        setRows(heard.current.reduce<readonly T[]>((held, data) => how.current.merge(held, data), how.current.read(answer)));
        setProblem(null);
      })
      .catch((error: unknown) => {
        if (mine === asked.current) setProblem(problemOf(error));
      });
  }, [path]);
  useEffect(() => {
    reload();
    return () => {
      asked.current++;
    };
  }, [reload]);
  useTopic(topic, { event: take, subscribed: reload, resync: reload });
  return { rows, problem, reload, take };
}
