import { useCallback, useRef, useState } from "react";
import { problemOf, RequestFailed } from "../../client/http";
import { sendFile } from "./requests";
import { NONE, type Failure, type Progress, type Wanted } from "./uploads.logic";

const AT_ONCE = 3;

export interface Uploads {
  progress: Progress;
  failures: readonly Failure[];
  send: (wanted: readonly Wanted[], how?: { replace?: boolean }) => void;
  cancel: () => void;
  forget: () => void;
}

/** Sends files up, a few at a time. `onDone` hears how many arrived when none is left. */
export function useUploads(onDone: (count: number) => void): Uploads {
  const [progress, setProgress] = useState<Progress>(NONE);
  const [failures, setFailures] = useState<readonly Failure[]>([]);
  const queue = useRef<{ wanted: Wanted; replace: boolean }[]>([]);
  const state = useRef({ running: 0, arrived: 0, stop: new AbortController() });

  const work = useCallback(async () => {
    const held = state.current;
    held.running++;
    for (let next = queue.current.shift(); next !== undefined; next = queue.current.shift()) {
      const { wanted, replace } = next;
      let sent = 0;
      const moved = (to: number) => {
        const more = to - sent;
        sent = to;
        setProgress((now) => ({ ...now, sent: now.sent + more, now: wanted.to }));
      };
      try {
        await sendFile(wanted.to, wanted.file, { replace, signal: held.stop.signal, onProgress: moved });
        held.arrived++;
      } catch (error) {
        if (held.stop.signal.aborted) break;
        const exists = error instanceof RequestFailed && error.status === 409;
        setFailures((all) => [...all, { ...wanted, message: problemOf(error).message, exists }]);
      }
      moved(wanted.file.size);
      setProgress((now) => ({ ...now, done: now.done + 1 }));
    }
    if (--held.running > 0) return;
    setProgress(NONE);
    if (held.arrived > 0) onDone(held.arrived);
    held.arrived = 0;
  }, [onDone]);

  const send = useCallback(
    (wanted: readonly Wanted[], how: { replace?: boolean } = {}) => {
      if (wanted.length === 0) return;
      const held = state.current;
      if (held.stop.signal.aborted) held.stop = new AbortController();
      queue.current.push(...wanted.map((one) => ({ wanted: one, replace: how.replace ?? false })));
      const bytes = wanted.reduce((all, one) => all + one.file.size, 0);
      setProgress((now) => ({ ...now, total: now.total + wanted.length, bytes: now.bytes + bytes }));
      while (held.running < Math.min(AT_ONCE, wanted.length)) void work();
    },
    [work],
  );
  const cancel = useCallback(() => {
    queue.current = [];
    state.current.stop.abort();
  }, []);
  const forget = useCallback(() => setFailures([]), []);
  return { progress, failures, send, cancel, forget };
}
