import type { HistoryEntry } from "../../../client/api";
import { inEffect, type Action } from "../../history/history.logic";
import type { Changes } from "./transcript.logic";

/** What became of the files of a turn: they are as it left them, were taken back (by one entry), or are not told of. */
export type Fate = { kind: "done" } | { kind: "reverted"; by: number } | { kind: "undone"; redo: boolean };

export function hasChanged(changes: Changes | null): changes is Changes {
  return changes !== null && changes.entry > changes.before && changes.added + changes.changed + changes.removed > 0;
}

/** `entries` are the newest; of a turn older than all of them nothing is known, and it counts as done. */
export function fateOf(entries: readonly HistoryEntry[], session: string, turn: number, changes: Changes): Fate {
  const effective = inEffect(entries);
  const reverts = entries
    .filter((entry) => entry.kind === "revert" && entry.who["session"] === session && entry.who["turn"] === String(turn) && effective.has(entry.id))
    .sort((a, b) => b.id - a.id);
  // Each takes back the one before it: the first the turn, the second the first.
  if (reverts.length % 2 === 1) return { kind: "reverted", by: reverts[0]?.id ?? 0 };
  const known = entries.some((entry) => entry.id === changes.entry);
  if (known && !effective.has(changes.entry)) return { kind: "undone", redo: entries.reduce((a, b) => (b.id > a.id ? b : a)).kind === "undo" };
  return { kind: "done" };
}

/** What the button beside a turn does; null when history itself is the place to look. */
export function actionOf(fate: Fate, session: string, turn: number, changes: Changes): Action | null {
  const of = { session, turn };
  switch (fate.kind) {
    case "done":
      return { action: "revert", entry: changes.entry, since: changes.before, of, choose: {} };
    case "reverted":
      return { action: "revert", entry: fate.by, of, again: true, choose: {} };
    case "undone":
      return fate.redo ? { action: "redo" } : null;
  }
}
