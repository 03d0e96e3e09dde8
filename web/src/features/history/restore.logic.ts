import type { RestoreCancellation, RestoreProgress } from "../../client/api";

/** A change of files that this page has asked for and that has not ended. */
export interface RestoreRun {
  id: string;
  /** How far it was when it was last seen; null until then. */
  progress: RestoreProgress | null;
  /** It was seen and is not listed any more: only its answer is missing. */
  isOver: boolean;
  cancel: "no" | "asked" | "cancelled" | "too-late";
}

/** What its button does: cancel it, nothing because that is under way, or close the dialog while it finishes. */
export type CancelState = "possible" | "under way" | "too late";

/** A name for one change of files. Not `randomUUID`, which pages without encryption do not have. */
export function newRestoreId(): string {
  return [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function beginRun(id: string): RestoreRun {
  return { id, progress: null, isOver: false, cancel: "no" };
}

/** The run after the list of restores was read. */
export function seeRestores(run: RestoreRun, restores: readonly RestoreProgress[]): RestoreRun {
  const progress = restores.find((each) => each.id === run.id);
  if (progress !== undefined) return { ...run, progress, isOver: false };
  return { ...run, isOver: run.progress !== null };
}

/** The run after a try to cancel it. One that is not found has not arrived yet: it is tried again. */
export function seeCancellation(run: RestoreRun, { outcome }: RestoreCancellation): RestoreRun {
  return { ...run, cancel: outcome === "not-found" ? "asked" : outcome };
}

export function cancelState(run: RestoreRun): CancelState {
  if (run.cancel === "cancelled") return "under way";
  if (run.cancel === "too-late" || run.isOver) return "too late";
  if (run.progress !== null && !run.progress.cancellable) return isCancelled(run.progress) ? "under way" : "too late";
  return run.cancel === "asked" ? "under way" : "possible";
}

const BEFORE_CHANGES: readonly RestoreProgress["phase"][] = ["waiting", "planning", "preparing"];

/** Whether it was cancelled, here or elsewhere, and ends without a change. */
function isCancelled(progress: RestoreProgress): boolean {
  return !progress.cancellable && BEFORE_CHANGES.includes(progress.phase);
}

const PROMISES: Record<CancelState, string> = {
  possible: "No file has changed yet.",
  "under way": "Cancelling. No file has changed.",
  "too late": "Files are being changed. This will finish, and you can undo it then.",
};

/** What is true about the files now. */
export function promiseOf(run: RestoreRun): string {
  if (run.cancel === "asked" && cancelState(run) === "under way") return "Cancelling…";
  return PROMISES[cancelState(run)];
}

export function wordsOf(run: RestoreRun): string {
  if (run.progress === null) return "Starting";
  return run.isOver ? "Finishing" : run.progress.words;
}

/** For a screen reader: the phase and each quarter of it, not every number. */
export function announcementOf(run: RestoreRun): string {
  const [phase = ""] = wordsOf(run).split(":");
  const total = run.isOver ? 0 : (run.progress?.total ?? 0);
  const quarter = total === 0 ? 0 : Math.floor((4 * (run.progress?.done ?? 0)) / total) * 25;
  return `${phase}${quarter === 0 ? "" : `, ${quarter} %`}. ${promiseOf(run)}`;
}
