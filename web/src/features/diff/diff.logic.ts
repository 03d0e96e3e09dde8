import type { ComparedFile, HistoryComparison, HistoryEntry } from "../../client/api";
import { shorten } from "../../ui/format";
import type { Comment, CommentedLine } from "../files/SideBySide";
import { type DiffLine, entryTitle } from "../history/history.logic";

/** The two states that are compared, as the address names them. */
export interface DiffPoints {
  old: string;
  new: string;
}

export function readPoints(query: URLSearchParams): DiffPoints {
  const old = query.get("old") ?? "";
  const now = query.get("new") ?? "";
  return { old: /^(\d+|good)$/.test(old) ? old : "before", new: /^\d+$/.test(now) ? now : "now" };
}

/** The address of a comparison. */
export function diffPath(points: DiffPoints, file: string | null = null): string {
  const query = new URLSearchParams({ old: points.old, new: points.new, ...(file === null ? {} : { file }) });
  return `/history/diff?${query.toString()}`;
}

export interface PointChoice {
  value: string;
  label: string;
}

const MAX_LABEL = 60;

const entryLabel = (entry: HistoryEntry): string => shorten(`#${entry.id} · ${entryTitle(entry)}`, MAX_LABEL);

/** The choices of a picker: named states, then turns, then other entries. The chosen one is always among them. */
export function pointChoices(
  entries: readonly HistoryEntry[],
  side: "old" | "new",
  chosen: string,
): { group: string; choices: PointChoice[] }[] {
  const named: PointChoice[] =
    side === "old"
      ? [
          { value: "before", label: "State before" },
          { value: "good", label: "Last known good state" },
        ]
      : [{ value: "now", label: "Now" }];
  const all = entries.map((entry) => ({
    value: String(entry.id),
    label: entryLabel(entry),
    turn: entry.kind === "turn",
  }));
  if (/^\d+$/.test(chosen) && !all.some((one) => one.value === chosen))
    all.unshift({ value: chosen, label: `#${chosen}`, turn: false });
  return [
    { group: "", choices: named },
    { group: "Turns", choices: all.filter((one) => one.turn) },
    { group: "Other entries", choices: all.filter((one) => !one.turn) },
  ].filter((group) => group.choices.length > 0);
}

export type Row =
  | { kind: "gap"; key: string; count: number | null }
  | ({ key: string; change: number | null } & DiffLine);

/** Hidden lines that one press shows. */
const MAX_OPENED = 1_000;

/**
 * The rows of a unified diff. Between hunks there is a gap with the number of hidden lines; an open gap is filled from
 * the new file. The first row of each run of changed lines has a number. `more` lines follow that are not drawn yet, so
 * that what comes after them is not known to be unchanged.
 */
export function rowsOf(
  lines: readonly DiffLine[],
  opened: ReadonlySet<string>,
  whole: readonly string[] | null,
  more = 0,
): Row[] {
  const rows: Row[] = [];
  let old = 1;
  let now = 1;
  let changes = 0;
  let inChange = false;
  const fill = (key: string, count: number, from = 0) => {
    if (count <= 0) return;
    if (!opened.has(key) || whole === null) {
      rows.push({ kind: "gap", key, count });
      return;
    }
    for (let at = from; at < from + Math.min(count, MAX_OPENED); at++)
      rows.push({
        kind: "same",
        key: `${key}-${at}`,
        old: old + at,
        new: now + at,
        text: whole[now + at - 1] ?? "",
        change: null,
      });
    fill(`${key}+`, count - MAX_OPENED, from + MAX_OPENED);
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
  if (more === 0 && lines.length > 0 && old > 1 && now > 1) {
    if (whole === null) rows.push({ kind: "gap", key: "rest", count: null });
    else fill("rest", whole.length - now + 1);
  }
  return rows;
}

/** The lines of a text, without an empty one at the end. */
export function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

export type { Comment, CommentedLine };

export const isSameLine = (one: CommentedLine, other: CommentedLine): boolean =>
  one.path === other.path && one.side === other.side && one.line === other.line;

/** The comments with one added or changed. An empty comment is removed. */
export function withComment(comments: readonly Comment[], comment: Comment): Comment[] {
  const others = comments.filter((one) => !isSameLine(one, comment));
  const all = comment.text.trim() === "" ? others : [...others, { ...comment, text: comment.text.trim() }];
  return all.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line));
}

const MAX_QUOTED = 500;

/** A path as the agent sees it inside the computer. */
export function pathInside(path: string): string {
  if (path.startsWith("workspace/")) return path.slice("workspace/".length);
  return path.startsWith("home/") ? `/home/agent/${path.slice("home/".length)}` : path;
}

/** All comments as one prompt: `path:line`, the line and the comment. Then the files that the owner approved. */
export function promptOf(comments: readonly Comment[], words: string, approved: readonly string[] = []): string {
  const parts = comments.map(({ path, line, side, quote, text }) => {
    const where = `${pathInside(path)}:${line}${side === "old" ? " (removed or replaced; this is the old line number)" : ""}`;
    const quoted = quote.length > MAX_QUOTED ? `${quote.slice(0, MAX_QUOTED)}…` : quote;
    return `${where}\n> ${quoted}\n${text}`;
  });
  const asked =
    comments.length === 0
      ? "I have looked at your changes."
      : `Please address ${comments.length === 1 ? "this comment" : "these comments"} on your changes:`;
  const kept =
    approved.length === 0 ? [] : [`Approved, so leave these as they are:\n${approved.map(pathInside).join("\n")}`];
  return [words.trim() || asked, ...parts, ...kept].join("\n\n");
}

const KEY = "freehold.comments";

export function storeComments(
  points: string,
  comments: readonly Comment[],
  store: Pick<Storage, "setItem" | "removeItem"> = sessionStorage,
): void {
  if (comments.length === 0) store.removeItem(`${KEY} ${points}`);
  else store.setItem(`${KEY} ${points}`, JSON.stringify(comments));
}

export function readComments(points: string, store: Pick<Storage, "getItem"> = sessionStorage): Comment[] {
  try {
    const found: unknown = JSON.parse(store.getItem(`${KEY} ${points}`) ?? "[]");
    return Array.isArray(found) ? (found as Comment[]) : [];
  } catch {
    return [];
  }
}

const APPROVED_KEY = "freehold.approved";

export function storeApproved(
  points: string,
  approved: readonly string[],
  store: Pick<Storage, "setItem" | "removeItem"> = sessionStorage,
): void {
  if (approved.length === 0) store.removeItem(`${APPROVED_KEY} ${points}`);
  else store.setItem(`${APPROVED_KEY} ${points}`, JSON.stringify(approved));
}

export function readApproved(points: string, store: Pick<Storage, "getItem"> = sessionStorage): string[] {
  try {
    const found: unknown = JSON.parse(store.getItem(`${APPROVED_KEY} ${points}`) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

/** The first file after one that is not approved yet, from the begin when none follows; null when all are. */
export function nextUnapproved<File extends Pick<ComparedFile, "path">>(
  files: readonly File[],
  from: string,
  approved: readonly string[],
): File | null {
  const at = files.findIndex((file) => file.path === from);
  const order = [...files.slice(at + 1), ...files.slice(0, at + 1)];
  return order.find((file) => !approved.includes(file.path)) ?? null;
}

/** Whether both are of the same two states. A state never changes, but "now" may be another one later. */
export const isSameComparison = (one: HistoryComparison, other: HistoryComparison): boolean =>
  (one.old?.id ?? 0) === (other.old?.id ?? 0) && one.new.id === other.new.id;

/** A comparison with another page of its files. A page that came twice adds nothing. */
export function withMoreFiles(held: HistoryComparison, page: HistoryComparison): HistoryComparison {
  if (!isSameComparison(held, page)) return held;
  const known = new Set(held.files.map((file) => file.path));
  return { ...held, files: [...held.files, ...page.files.filter((file) => !known.has(file.path))] };
}

/** Whether a file may be on a page of the comparison that was not read yet. */
export const isUnlisted = (held: HistoryComparison, path: string): boolean =>
  held.total > held.files.length && !held.files.some((file) => file.path === path);

/** The file to show: the wanted one, or the first. */
export function chosenFile(files: readonly ComparedFile[], wanted: string | null): ComparedFile | null {
  return files.find((file) => file.path === wanted) ?? files[0] ?? null;
}

/** The next file in a direction; null at the end. */
export function nextFile(files: readonly ComparedFile[], from: string, step: 1 | -1): ComparedFile | null {
  const at = files.findIndex((file) => file.path === from);
  return at < 0 ? null : (files[at + step] ?? null);
}

/** A larger version is not read into the browser. */
export const MAX_DOWNLOAD = 256 * 1024 * 1024;

export interface DownloadableVersion {
  side: "old" | "new";
  entry: number;
  size: number;
}

/** The versions of a file that history has. */
export function downloadableVersions(file: ComparedFile, old: number | null, now: number | null) {
  const versions: DownloadableVersion[] = [];
  if (old !== null && file.old_size !== null) versions.push({ side: "old", entry: old, size: file.old_size });
  if (now !== null && file.new_size !== null) versions.push({ side: "new", entry: now, size: file.new_size });
  return versions;
}

/** The command that writes a file as it was at an entry. A shell takes every path as it is. */
export function showCommand(entry: number, path: string): string {
  const quoted = `'${`${entry}:${path}`.replaceAll("'", "'\\''")}'`;
  return `freehold show ${quoted} > ${entry}-version`;
}

/** Whether a file is text that can be compared line by line. */
export const hasText = (file: ComparedFile): boolean => file.text !== "" && !file.binary;
