import { useSyncExternalStore } from "react";

/** Text that was typed and not saved, by path. It outlives going to another page, and the browser asks before it is lost. */
export interface Draft {
  text: string;
  /** The version it was typed over. */
  etag: string;
}

let drafts: ReadonlyMap<string, Draft> = new Map();
const watchers = new Set<() => void>();

function ask(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

function become(next: ReadonlyMap<string, Draft>): void {
  if (next.size > 0 && drafts.size === 0) window.addEventListener("beforeunload", ask);
  if (next.size === 0) window.removeEventListener("beforeunload", ask);
  drafts = next;
  for (const watcher of watchers) watcher();
}

export const draftOf = (path: string): Draft | undefined => drafts.get(path);

export function keepDraft(path: string, draft: Draft | null): void {
  if (draft === null && !drafts.has(path)) return;
  const next = new Map(drafts);
  if (draft === null) next.delete(path);
  else next.set(path, draft);
  become(next);
}

/** A file that is called something else takes its draft along. */
export function moveDraft(from: string, to: string | null): void {
  const draft = drafts.get(from);
  if (draft === undefined) return;
  keepDraft(from, null);
  if (to !== null) keepDraft(to, draft);
}

function listen(changed: () => void): () => void {
  watchers.add(changed);
  return () => watchers.delete(changed);
}

export const useDrafts = (): ReadonlyMap<string, Draft> => useSyncExternalStore(listen, () => drafts);
