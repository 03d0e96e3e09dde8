import { useSyncExternalStore } from "react";

/** Text that was typed and not saved. It survives going to another page, and the browser asks before it is lost. */
export interface Draft {
  text: string;
  /** The version that was edited. */
  etag: string;
}

let drafts: ReadonlyMap<string, Draft> = new Map();
const watchers = new Set<() => void>();

function askBeforeUnload(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

function replaceDrafts(next: ReadonlyMap<string, Draft>): void {
  if (next.size > 0 && drafts.size === 0) window.addEventListener("beforeunload", askBeforeUnload);
  if (next.size === 0) window.removeEventListener("beforeunload", askBeforeUnload);
  drafts = next;
  for (const watcher of watchers) watcher();
}

export const draftOf = (path: string): Draft | undefined => drafts.get(path);

export function setDraft(path: string, draft: Draft | null): void {
  if (draft === null && !drafts.has(path)) return;
  const next = new Map(drafts);
  if (draft === null) next.delete(path);
  else next.set(path, draft);
  replaceDrafts(next);
}

/** Moves the draft of a file that was renamed; removes it when `to` is null. */
export function moveDraft(from: string, to: string | null): void {
  const draft = drafts.get(from);
  if (draft === undefined) return;
  setDraft(from, null);
  if (to !== null) setDraft(to, draft);
}

function listen(changed: () => void): () => void {
  watchers.add(changed);
  return () => watchers.delete(changed);
}

export const useDrafts = (): ReadonlyMap<string, Draft> => useSyncExternalStore(listen, () => drafts);
