import type { Bead } from "../../client/api";

export type Column = "open" | "in_progress" | "closed";

export const COLUMNS: readonly { column: Column; title: string }[] = [
  { column: "open", title: "Open" },
  { column: "in_progress", title: "In progress" },
  { column: "closed", title: "Closed" },
];

/** How many closed items are shown. The others are in `freehold beads --all`. */
export const MAX_CLOSED = 20;

/** The items of a column: what can be begun before what is blocked, then by priority and age. Closed ones by recency. */
export function columnItems(beads: readonly Bead[], column: Column): Bead[] {
  const found = beads.filter((bead) => bead.status === column);
  if (column === "closed") {
    return found.sort((a, b) => (b.closed ?? "").localeCompare(a.closed ?? "")).slice(0, MAX_CLOSED);
  }
  return found.sort(
    (a, b) => Number(a.blocked) - Number(b.blocked) || a.priority - b.priority || a.created.localeCompare(b.created),
  );
}

export type BoardAction = "claim" | "release" | "close" | "reopen" | "work";

/** What can be done with an item, in the order of the buttons. */
export function actionsOf(bead: Bead): BoardAction[] {
  if (bead.status === "closed") return ["reopen"];
  if (bead.status === "in_progress") return ["release", "close"];
  return bead.blocked ? ["close"] : ["work", "claim", "close"];
}

/** What moving an item to a column means; null when it is not possible. */
export function actionForMove(bead: Bead, to: Column): BoardAction | null {
  if (bead.status === to) return null;
  const wanted: BoardAction =
    to === "closed" ? "close" : to === "in_progress" ? "claim" : bead.status === "closed" ? "reopen" : "release";
  return actionsOf(bead).includes(wanted) ? wanted : null;
}

/** Closing an item on which a session has worked needs evidence. */
export function needsEvidence(bead: Bead): boolean {
  return bead.sessions.length > 0;
}

/** The holder in words: a session is shown as a link elsewhere. */
export function holderText(holder: string): string {
  if (holder === "owner") return "you";
  if (holder.startsWith("session:")) return "an agent";
  return holder.startsWith("token:") ? `token ${holder.slice("token:".length)}` : holder;
}

/** Whether an event of the timeline concerns the board. */
export function concernsBoard(event: unknown): boolean {
  const kind = (event as { kind?: unknown } | null)?.kind;
  return typeof kind === "string" && (kind.startsWith("beads.") || kind.startsWith("slot."));
}
