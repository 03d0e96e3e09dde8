import { useCallback, useEffect, useRef, useState } from "react";
import type { RestoreCancellation, RestoreProgress } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useToasts } from "../../ui/Toasts";
import { beginRun, newRestoreId, type RestoreRun, seeCancellation, seeRestores } from "./restore.logic";

const POLL_INTERVAL = 400;

interface RestoreRequest<T> {
  /** Sends the request with the name that it gets. */
  send: (restoreId: string) => Promise<T>;
  /** What to say when it is done, and when it was cancelled. */
  doneText: (outcome: T) => string;
  cancelledText: string;
  onDone: () => void;
  onClose: () => void;
}

export interface Restore {
  /** Null while nothing runs. */
  run: RestoreRun | null;
  /** Carries it out. It goes on when the dialog is closed. Returns the problem to show in the dialog. */
  start: <T>(asked: RestoreRequest<T>) => Promise<Problem | null>;
  cancel: () => void;
}

export const cancelRestore = (id: string) =>
  request<RestoreCancellation>(`/v1/history/restores/${id}/cancel`, { method: "POST" });

/** One undo, redo, restore, revert or rewind of a dialog: how far it is, its cancellation and its end. */
export function useRestore(): Restore {
  const [run, setRun] = useState<RestoreRun | null>(null);
  const id = run?.id ?? null;
  const isCancelWanted = useRef(false);
  const isClosed = useIsClosed();
  const toasts = useToasts();

  const tryCancel = useCallback(async (restoreId: string) => {
    const found = await cancelRestore(restoreId);
    if (found.outcome !== "not-found") isCancelWanted.current = false;
    setRun((before) => (before?.id === restoreId ? seeCancellation(before, found) : before));
  }, []);

  useEffect(() => {
    if (id === null) return;
    let timer: ReturnType<typeof setTimeout>;
    let current = true;
    const look = async () => {
      try {
        const restores = await request<RestoreProgress[]>("/v1/history/restores");
        if (current) setRun((before) => (before?.id === id ? seeRestores(before, restores) : before));
        if (current && isCancelWanted.current) await tryCancel(id);
      } catch {
        // The answer to the request itself tells what happened.
      }
      if (current) timer = setTimeout(() => void look(), POLL_INTERVAL);
    };
    timer = setTimeout(() => void look(), POLL_INTERVAL);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [id, tryCancel]);

  const start = useCallback(
    async <T>({ send, doneText, cancelledText, onDone, onClose }: RestoreRequest<T>) => {
      const restoreId = newRestoreId();
      isCancelWanted.current = false;
      setRun(beginRun(restoreId));
      try {
        toasts.done(doneText(await send(restoreId)));
        onDone();
      } catch (error) {
        const problem = problemOf(error);
        if (problem.code !== "history.cancelled") {
          setRun(null);
          if (isClosed.current) toasts.failed(error);
          return problem;
        }
        toasts.done(cancelledText);
      }
      setRun(null);
      // Another dialog may be open by now.
      if (!isClosed.current) onClose();
      return null;
    },
    [toasts, isClosed],
  );

  const cancel = useCallback(() => {
    if (id === null) return;
    isCancelWanted.current = true;
    setRun((before) => (before === null ? before : { ...before, cancel: "asked" }));
    tryCancel(id).catch(() => undefined);
  }, [id, tryCancel]);

  return { run, start, cancel };
}

function useIsClosed() {
  const isClosed = useRef(false);
  useEffect(() => {
    isClosed.current = false;
    return () => {
      isClosed.current = true;
    };
  }, []);
  return isClosed;
}
