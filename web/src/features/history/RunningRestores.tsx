import { useState } from "react";
import type { RestoreProgress } from "../../client/api";
import { useResource } from "../../data/resource";
import { useToasts } from "../../ui/Toasts";
import { RestoreBar } from "./RestoreStatus";
import { cancelState, promiseOf, seeRestores } from "./restore.logic";
import { cancelRestore } from "./useRestore";

const POLL_INTERVAL = 1_000;

/** Every change of files that runs or waits, whoever asked for it. */
export function RunningRestores() {
  const [polls, setPolls] = useState(false);
  const { value } = useResource<RestoreProgress[]>("/v1/history/restores", {
    ...(polls ? { pollInterval: POLL_INTERVAL } : {}),
  });
  const toasts = useToasts();
  const isRunning = value !== null && value.length > 0;
  if (isRunning !== polls) setPolls(isRunning);

  return value?.map((progress) => {
    const run = seeRestores({ id: progress.id, progress: null, isOver: false, cancel: "no" }, value);
    return (
      <section key={progress.id} className="card restore-running" aria-label={`Running ${progress.kind}`}>
        <div className="grow">
          <strong>{TITLES[progress.kind]}</strong>
          <RestoreBar words={progress.words} progress={progress} />
          <p className="quiet">{promiseOf(run)}</p>
        </div>
        {cancelState(run) === "possible" && (
          <button type="button" onClick={() => void cancelRestore(progress.id).catch(toasts.failed)}>
            Cancel
          </button>
        )}
      </section>
    );
  });
}

const TITLES: Record<RestoreProgress["kind"], string> = {
  undo: "Undo",
  redo: "Redo",
  restore: "Restore",
  revert: "Revert",
};
