import type { HistoryEntry } from "../../../client/api";
import { effectiveEntries, type HistoryAction } from "../../history/history.logic";
import type { Changes } from "./transcript.logic";

/** What happened to the changes of a turn since: nothing, one entry reverted them, or an undo went back before them. */
export type TurnState = { kind: "done" } | { kind: "reverted"; by: number } | { kind: "undone"; canRedo: boolean };

export function hasChanged(changes: Changes | null): changes is Changes {
  return changes !== null && changes.entry > changes.before && changes.added + changes.changed + changes.removed > 0;
}

/** The state of a turn by the newest history entries. A turn that is older than all of them counts as done. */
export function turnState(
  entries: readonly HistoryEntry[],
  session: string,
  turn: number,
  changes: Changes,
): TurnState {
  const effective = effectiveEntries(entries);
  const reverts = entries
    .filter(
      (entry) =>
        entry.kind === "revert" &&
        entry.who["session"] === session &&
        entry.who["turn"] === String(turn) &&
        effective.has(entry.id),
    )
    .sort((a, b) => b.id - a.id);
  // Each revert takes back the one before it. The first one takes back the turn.
  if (reverts.length % 2 === 1) return { kind: "reverted", by: reverts[0]?.id ?? 0 };
  const known = entries.some((entry) => entry.id === changes.entry);
  if (known && !effective.has(changes.entry))
    return { kind: "undone", canRedo: entries.reduce((a, b) => (b.id > a.id ? b : a)).kind === "undo" };
  return { kind: "done" };
}

/** What the button of a turn does; null when it can only be done in History. */
export function turnAction(state: TurnState, session: string, turn: number, changes: Changes): HistoryAction | null {
  const of = { session, turn };
  switch (state.kind) {
    case "done":
      return { action: "revert", entry: changes.entry, since: changes.before, of, choose: {} };
    case "reverted":
      return { action: "revert", entry: state.by, of, again: true, choose: {} };
    case "undone":
      return state.canRedo ? { action: "redo" } : null;
  }
}
