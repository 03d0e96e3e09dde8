import { useEffect, useRef } from "react";
import type { RestoreProgress } from "../../client/api";
import { announcementOf, cancelState, promiseOf, type RestoreRun, wordsOf } from "./restore.logic";
import "./restore.css";

/** How far a change of files is, in a dialog. It takes the focus from the button that started it. */
export function RestoreStatus({ run }: { run: RestoreRun }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => place.current?.focus(), []);
  return (
    <div ref={place} className="restore-status" tabIndex={-1} role="group" aria-label="Progress">
      <RestoreBar words={wordsOf(run)} progress={run.isOver ? null : run.progress} />
      <p className="quiet">{promiseOf(run)}</p>
      <p className="visually-hidden" role="status">
        {announcementOf(run)}
      </p>
    </div>
  );
}

export function RestoreBar({ words, progress }: { words: string; progress: RestoreProgress | null }) {
  const counted = progress !== null && progress.total > 0 ? { value: progress.done, max: progress.total } : {};
  return (
    <>
      <p>{words}</p>
      <progress className="wide" aria-label={words} {...counted} />
    </>
  );
}

/** The buttons of a dialog while its change of files runs. They stay where they were: a second click does no harm. */
export function RestoreButtons({
  run,
  doing,
  onCancel,
  onClose,
}: {
  run: RestoreRun;
  doing: string;
  /** Null when it cannot be cancelled at all. */
  onCancel: (() => void) | null;
  onClose: () => void;
}) {
  const state = onCancel === null ? "too late" : cancelState(run);
  return (
    <div className="dialog-foot">
      {state === "too late" ? (
        <button type="button" onClick={onClose}>
          Let it finish
        </button>
      ) : (
        <button
          type="button"
          aria-disabled={state === "under way"}
          onClick={state === "possible" ? (onCancel ?? undefined) : undefined}
        >
          {state === "under way" ? "Cancelling…" : "Cancel"}
        </button>
      )}
      <button type="button" className="primary" disabled>
        {doing}
      </button>
    </div>
  );
}
