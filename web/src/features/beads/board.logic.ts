import type { Bead, BeadChange, BeadDetails, BeadWork } from "../../client/api";
import { translate } from "../../language/translation";
import { countOf } from "../../ui/format";

export type Column = "open" | "in_progress" | "closed";

export const COLUMNS: readonly { column: Column; title: string }[] = [
  { column: "open", title: "Open" },
  { column: "in_progress", title: "In progress" },
  { column: "closed", title: "Closed" },
];

/** How many items a column shows. `freehold beads --status` lists all of them. */
export const MAX_ITEMS: Record<Column, number> = { open: 200, in_progress: 200, closed: 20 };

/** The items of a column: what can be begun before what is blocked, then by priority and age. Closed ones by recency. */
export function columnItems(beads: readonly Bead[], column: Column): Bead[] {
  const found = beads.filter((bead) => bead.status === column);
  if (column === "closed") return found.sort((a, b) => (b.closed ?? "").localeCompare(a.closed ?? ""));
  return found.sort(
    (a, b) => Number(a.blocked) - Number(b.blocked) || a.priority - b.priority || a.created.localeCompare(b.created),
  );
}

/** The column beside one; undefined at the edge of the board. */
export function columnBeside(column: Column, step: 1 | -1): Column | undefined {
  return COLUMNS[COLUMNS.findIndex((one) => one.column === column) + step]?.column;
}

/** Labels as they are typed, separated by commas. */
export function readLabels(text: string): string[] {
  return [...new Set(text.split(",").map((label) => label.trim()))].filter((label) => label !== "");
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
  if (holder === "owner") return translate("you");
  if (holder.startsWith("session:")) return "an agent";
  if (holder.startsWith("neighbour:")) return "another Freehold";
  if (!holder.startsWith("token:")) return holder;
  const [token = "", ...actors] = holder.slice("token:".length).split("/");
  const isAgent = actors.at(-1)?.startsWith("session:") === true;
  return isAgent ? `an agent by token ${token}` : `token ${token}`;
}

/** Whether a session that worked on an item is one of this Freehold, so that there is a page of it. */
export function isSessionHere(id: string): boolean {
  return !id.includes("/") && !id.startsWith("neighbour:");
}

/** Whether an event of the timeline concerns the board. */
export function concernsBoard(event: unknown): boolean {
  const kind = (event as { kind?: unknown } | null)?.kind;
  return typeof kind === "string" && (kind.startsWith("beads.") || kind.startsWith("slot."));
}

/** What an item has to do with others, and where it stands, in words: one item a line. Empty relations are left out. */
export function relationsOf(
  bead: Bead,
  details: BeadDetails | null,
  titleOf: (id: string) => string,
): [string, string][] {
  const names = (ids: readonly string[]) => ids.map(titleOf).join("\n");
  const found: [string, string | null][] = [
    ["Id", bead.id],
    ["Priority", String(bead.priority)],
    ["Held by", bead.holder === null ? null : holderText(bead.holder)],
    ["Part of", bead.parent === null ? null : titleOf(bead.parent)],
    ["Parts", names(details?.children ?? [])],
    ["Waits for", names(bead.needs)],
    ["Blocks", names(details?.blocks ?? [])],
    ["Related", names(bead.related)],
    ["Closed", bead.close_reason],
    ["Evidence", bead.evidence],
  ];
  return found.filter((one): one is [string, string] => one[1] !== null && one[1] !== "");
}

/** What a session changed in the files. */
export function workText({ added, changed, removed }: BeadWork): string {
  const parts = [
    [added, "added"],
    [changed, "changed"],
    [removed, "removed"],
  ] as const;
  const told = parts.filter(([count]) => count > 0).map(([count, act]) => `${countOf(count, "file")} ${act}`);
  return told.length === 0 ? "No files changed" : told.join(", ");
}

/** A line of the history of an item. */
export function changeText({ who, action, fields }: BeadChange): string {
  const name = holderText(who);
  const names = action === "updated" ? ` ${Object.keys(fields).join(", ")}` : "";
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}: ${action.replaceAll("_", " ")}${names}`;
}
