import type { ComparedFile, HistoryEntry } from "../../client/api";
import { titleOf, type DiffLine } from "../history/history.logic";

/** Two states to compare, as an address names them. */
export interface Points {
  old: string;
  new: string;
}

export function readPoints(query: URLSearchParams): Points {
  const old = query.get("old") ?? "";
  const now = query.get("new") ?? "";
  return { old: /^(\d+|good)$/.test(old) ? old : "before", new: /^\d+$/.test(now) ? now : "now" };
}

export function addressOf(points: Points, file: string | null = null): string {
  const query = new URLSearchParams({ old: points.old, new: points.new, ...(file === null ? {} : { file }) });
  return `/history/diff?${query.toString()}`;
}

export interface Choice {
  value: string;
  label: string;
}

const LONGEST = 60;

function short(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

export const labelOf = (entry: HistoryEntry): string => short(`#${entry.id} · ${titleOf(entry)}`);

/** What the picker offers: names that need no number, then turns, then everything else. One that is not listed is offered all the same. */
export function choices(entries: readonly HistoryEntry[], side: "old" | "new", chosen: string): { group: string; choices: Choice[] }[] {
  const named: Choice[] =
    side === "old"
      ? [
          { value: "before", label: "The state just before" },
          { value: "good", label: "Last known good" },
        ]
      : [{ value: "now", label: "Now" }];
  const all = entries.map((entry) => ({ value: String(entry.id), label: labelOf(entry), turn: entry.kind === "turn" }));
  if (/^\d+$/.test(chosen) && !all.some((one) => one.value === chosen)) all.unshift({ value: chosen, label: `#${chosen}`, turn: false });
  return [
    { group: "", choices: named },
    { group: "Turns", choices: all.filter((one) => one.turn) },
    { group: "Entries", choices: all.filter((one) => !one.turn) },
  ].filter((group) => group.choices.length > 0);
}

export type Row = { kind: "gap"; key: string; count: number | null } | ({ key: string; change: number | null } & DiffLine);

/**
 * The rows of a unified diff: hunks become gaps that say how much lies between them, opened ones are filled from the
 * whole of the new file. Each run of changed lines has a number, on its first row.
 */
export function rowsOf(lines: readonly DiffLine[], opened: ReadonlySet<string>, whole: readonly string[] | null): Row[] {
  const rows: Row[] = [];
  let old = 1;
  let now = 1;
  let changes = 0;
  let inChange = false;
  const fill = (key: string, count: number) => {
    if (count <= 0) return;
    if (!opened.has(key) || whole === null) {
      rows.push({ kind: "gap", key, count });
      return;
    }
    for (let at = 0; at < count; at++) rows.push({ kind: "same", key: `${key}-${at}`, old: old + at, new: now + at, text: whole[now + at - 1] ?? "", change: null });
  };
  for (const [index, line] of lines.entries()) {
    if (line.kind === "hunk") {
      const [, first, second] = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line.text) ?? [];
      fill(`gap-${index}`, Math.max(Number(second) - now, Number(first) - old, 0));
      old = Number(first);
      now = Number(second);
      inChange = false;
      continue;
    }
    const changed = line.kind === "added" || line.kind === "removed";
    rows.push({ ...line, key: String(index), change: changed && !inChange ? changes++ : null });
    if (line.kind !== "note") inChange = changed;
    if (line.old !== null) old = line.old + 1;
    if (line.new !== null) now = line.new + 1;
  }
  if (lines.length > 0 && old > 1 && now > 1) {
    if (whole === null) rows.push({ kind: "gap", key: "rest", count: null });
    else fill("rest", whole.length - now + 1);
  }
  return rows;
}

/** The lines of a text, without an empty one after the last line's end. */
export function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

export interface Comment {
  path: string;
  side: "old" | "new";
  line: number;
  quote: string;
  text: string;
}

export type Spot = Omit<Comment, "text">;

export const sameSpot = (one: Spot, other: Spot): boolean => one.path === other.path && one.side === other.side && one.line === other.line;

/** Comments with one put in its place; an empty one is taken out. */
export function withComment(comments: readonly Comment[], comment: Comment): Comment[] {
  const others = comments.filter((one) => !sameSpot(one, comment));
  const all = comment.text.trim() === "" ? others : [...others, { ...comment, text: comment.text.trim() }];
  return all.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line));
}

const MOST_QUOTED = 500;

/** Where the agent finds a path: its own folders, as it sees them. */
export function insidePath(path: string): string {
  if (path.startsWith("workspace/")) return path.slice("workspace/".length);
  return path.startsWith("home/") ? `/home/agent/${path.slice("home/".length)}` : path;
}

/** All comments as one prompt: `path:line`, the line itself, what was said of it. */
export function promptOf(comments: readonly Comment[], words: string): string {
  const parts = comments.map(({ path, line, side, quote, text }) => {
    const where = `${insidePath(path)}:${line}${side === "old" ? " (a line that was removed or replaced; the number is the old one)" : ""}`;
    const quoted = quote.length > MOST_QUOTED ? `${quote.slice(0, MOST_QUOTED)}…` : quote;
    return `${where}\n> ${quoted}\n${text}`;
  });
  const lead = words.trim() || `Please look at ${comments.length === 1 ? "this comment" : "these comments"} on what was changed:`;
  return [lead, ...parts].join("\n\n");
}

const KEY = "freehold.comments";

export function keepComments(points: string, comments: readonly Comment[], store: Pick<Storage, "setItem" | "removeItem"> = sessionStorage): void {
  if (comments.length === 0) store.removeItem(`${KEY} ${points}`);
  else store.setItem(`${KEY} ${points}`, JSON.stringify(comments));
}

export function keptComments(points: string, store: Pick<Storage, "getItem"> = sessionStorage): Comment[] {
  try {
    const found: unknown = JSON.parse(store.getItem(`${KEY} ${points}`) ?? "[]");
    return Array.isArray(found) ? (found as Comment[]) : [];
  } catch {
    return [];
  }
}

/** The file to look at: the one asked for, else the first. */
export function chosenFile(files: readonly ComparedFile[], wanted: string | null): ComparedFile | null {
  return files.find((file) => file.path === wanted) ?? files[0] ?? null;
}

/** The next file in a direction; null at either end. */
export function neighbour(files: readonly ComparedFile[], from: string, step: 1 | -1): ComparedFile | null {
  const at = files.findIndex((file) => file.path === from);
  return at < 0 ? null : (files[at + step] ?? null);
}

/** Whether both sides can be shown next to each other: text, and both of them whole. */
export const hasText = (file: ComparedFile): boolean => file.text !== "" && !file.binary;
