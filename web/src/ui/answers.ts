import { useCallback, useEffect, useRef, useState } from "react";
import { problemOf, request, type Problem } from "../client/http";

export interface Answer<T> {
  value: T | null;
  problem: Problem | null;
  reload: () => void;
  /** Show what an action answered, without asking again. */
  put: (value: T) => void;
}

/** What `path` answers; while it is asked again the last answer stays. */
export function useAnswer<T>(path: string | null): Answer<T> {
  const [held, setHeld] = useState<{ path: string | null; value: T | null; problem: Problem | null }>({ path, value: null, problem: null });
  const asked = useRef(0);
  const reload = useCallback(() => {
    if (path === null) return;
    const mine = ++asked.current;
    request<T>(path)
      .then((value) => {
        if (mine === asked.current) setHeld({ path, value, problem: null });
      })
      .catch((error: unknown) => {
        if (mine === asked.current)
          setHeld((before) => ({ path, value: before.path === path ? before.value : null, problem: problemOf(error) }));
      });
  }, [path]);
  const put = useCallback(
    (value: T) => {
      asked.current++;
      setHeld({ path, value, problem: null });
    },
    [path],
  );
  useEffect(() => {
    reload();
    return () => {
      asked.current++;
    };
  }, [reload]);
  const current = held.path === path;
  return { value: current ? held.value : null, problem: current ? held.problem : null, reload, put };
}

/** The present, looked at often enough for "3 min ago". */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), 15_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
