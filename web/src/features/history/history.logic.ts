import type { HistoryEntry } from "../../client/api";

/**
 * The entries whose work is in the files now. An undo takes its place among the entries, and what lies between it and
 * the state it went back to is still there to be had again, but not in the files.
 */
export function inEffect(entries: readonly HistoryEntry[]): Set<number> {
  const held = new Set<number>();
  const down = [...entries].sort((a, b) => b.id - a.id);
  let ceiling = Infinity;
  for (const [index, entry] of down.entries()) {
    if (entry.id > ceiling) continue;
    if (index === 0 || entry.equals === entry.id) held.add(entry.id);
    ceiling = entry.equals === entry.id ? entry.id - 1 : entry.equals;
  }
  return held;
}

const TITLES: Record<string, string> = {
  snapshot: "State kept",
  turn: "The agent worked",
  command: "Worked in a terminal",
  undo: "Undone",
  redo: "Done again",
  restore: "Restored",
  revert: "One change taken back",
  quiet: "Files changed",
};

/** One line that says why; the words of whoever made it when there are any. */
export function titleOf(entry: HistoryEntry): string {
  const said = entry.who["prompt"] || entry.why;
  if (entry.kind === "undo" || entry.kind === "redo") {
    return `${TITLES[entry.kind]}: back to the state of #${entry.equals}`;
  }
  if (entry.kind === "command" && said === "terminal") return TITLES["command"] ?? "";
  // Taken because something else was about to happen: what matters is that files had changed by then.
  if (entry.kind === "snapshot" && said.startsWith("found before")) return TITLES["quiet"] ?? "";
  if (said) return said[0]?.toUpperCase() + said.slice(1);
  return TITLES[entry.kind] ?? entry.kind;
}

/** Who did it, as the owner would say: whatever comes with a token of theirs is theirs too. */
export function whoWords(who: string): string {
  if (who === "owner") return "you";
  // A verb of the command line lends itself a token of its name, with a tail of its own.
  const token = /^token:(.+?)(?:-[0-9a-f]{8})?$/.exec(who)?.[1];
  return token === undefined ? who : `you, by token ${token}`;
}

export function whoOf(entry: HistoryEntry): string {
  const { by, agent, terminal } = entry.who;
  switch (by) {
    case "agent":
      return agent ?? "the agent";
    case "terminal":
      return terminal ? `terminal ${terminal}` : "a terminal";
    case "ssh":
      return "ssh";
    case "owner":
      return whoWords(agent ?? "owner");
    default:
      return "found on disk";
  }
}

/** "2 added, 1 changed", or that nothing was. */
export function countsOf(entry: Pick<HistoryEntry, "added" | "changed" | "removed">): string {
  const parts = [
    entry.added > 0 && `${entry.added} added`,
    entry.changed > 0 && `${entry.changed} changed`,
    entry.removed > 0 && `${entry.removed} removed`,
  ].filter(Boolean);
  return parts.length > 0 ? parts.join(", ") : "nothing changed";
}

export interface FileDiff {
  path: string;
  word: string;
  added: number | null;
  removed: number | null;
  text: string;
  note: string;
}

export function fileDiffs(files: readonly Record<string, unknown>[]): FileDiff[] {
  return files.map((file) => ({
    path: String(file["path"] ?? ""),
    word: String(file["word"] ?? ""),
    added: typeof file["added"] === "number" ? file["added"] : null,
    removed: typeof file["removed"] === "number" ? file["removed"] : null,
    text: typeof file["text"] === "string" ? file["text"] : "",
    note: typeof file["note"] === "string" ? file["note"] : "",
  }));
}

export interface DiffLine {
  kind: "hunk" | "added" | "removed" | "same" | "note";
  old: number | null;
  new: number | null;
  text: string;
}

export const MOST_LINES = 2_000;

/** The lines of a unified diff with their numbers on both sides. */
export function diffLines(text: string): { lines: DiffLine[]; more: number } {
  const lines: DiffLine[] = [];
  let before = 0;
  let after = 0;
  const body = text.split("\n");
  if (body.at(-1) === "") body.pop();
  let inHunk = false;
  for (const line of body) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      inHunk = true;
      before = Number(hunk[1]);
      after = Number(hunk[2]);
      lines.push({ kind: "hunk", old: null, new: null, text: line });
    } else if (!inHunk) continue;
    else if (line.startsWith("+")) lines.push({ kind: "added", old: null, new: after++, text: line.slice(1) });
    else if (line.startsWith("-")) lines.push({ kind: "removed", old: before++, new: null, text: line.slice(1) });
    else if (line.startsWith("\\")) lines.push({ kind: "note", old: null, new: null, text: line.slice(2) });
    else lines.push({ kind: "same", old: before++, new: after++, text: line.slice(1) });
  }
  return { lines: lines.slice(0, MOST_LINES), more: Math.max(0, lines.length - MOST_LINES) };
}

/** A turn of a session, as an entry names the one that made it. */
export interface Turn {
  session: string;
  turn: number;
}

export function turnOf(entry: HistoryEntry): Turn | null {
  const { session, turn } = entry.who;
  return entry.kind === "turn" && session && turn && /^\d+$/.test(turn) ? { session, turn: Number(turn) } : null;
}

export type Action =
  | { action: "undo"; entry?: number }
  | { action: "redo" }
  | { action: "restore"; entry: number; paths: string[] }
  | { action: "revert"; entry: number; choose: Record<string, "old" | "mine">; since?: number; of?: { session: string; turn: number }; again?: boolean };

export function actionTitle(action: Action): string {
  switch (action.action) {
    case "undo":
      return action.entry === undefined ? "Undo the last change" : `Go back to before #${action.entry}`;
    case "redo":
      return "Redo what was undone";
    case "restore":
      return action.paths.length === 1 ? `Restore ${action.paths[0]}` : `Restore everything as it was at #${action.entry}`;
    case "revert":
      if (action.of) return action.again ? "Do again what this turn did" : "Undo what this turn did";
      return `Take back only #${action.entry}`;
  }
}

const FATES: Record<string, string> = {
  write: "written",
  link: "linked",
  folder: "made",
  remove: "removed",
  mode: "permissions set",
  keep: "kept",
};

export interface PlannedStep {
  path: string;
  fate: string;
  words: string;
  detail: string;
}

/** What an owner wants to know of a plan: times of folders are put back too, but nobody asks. */
export function stepsToShow(steps: readonly Record<string, string>[]): PlannedStep[] {
  return steps
    .filter((step) => step["fate"] !== "time")
    .map((step) => ({
      path: step["path"] ?? "",
      fate: step["fate"] ?? "",
      words: FATES[step["fate"] ?? ""] ?? step["fate"] ?? "",
      detail: step["detail"] ?? "",
    }));
}

/** The body that carries an action out, and where it is sent. */
export function requestOf(action: Action): { path: string; body: object } {
  const { action: verb, ...body } = { ...action, again: undefined };
  return { path: `/v1/history/${verb}`, body };
}
