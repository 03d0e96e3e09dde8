import type { HistoryEntry } from "../../client/api";
import { translate } from "../../language/translation";
import { MAX_LINE } from "../../ui/plainText.logic";

/**
 * The entries that are in effect: those whose changes are in the files now, and undos and redos that nothing has taken
 * back since. Each recorded state was made from the one that the entry before it had, so the states form a tree, and an
 * undo or redo moves to another state of it.
 */
export function effectiveEntries(entries: readonly HistoryEntry[]): Set<number> {
  const oldestFirst = [...entries].sort((a, b) => a.id - b.id);
  const madeFrom = new Map<number, number>();
  const moves: { id: number; from: number; to: number }[] = [];
  for (const [index, entry] of oldestFirst.entries()) {
    const before = oldestFirst[index - 1]?.equals;
    if (entry.equals !== entry.id) moves.push({ id: entry.id, from: before ?? entry.equals, to: entry.equals });
    else if (before !== undefined) madeFrom.set(entry.id, before);
  }
  const now = new Set<number>();
  for (let at = oldestFirst.at(-1)?.equals; at !== undefined; at = madeFrom.get(at)) now.add(at);
  const oldest = oldestFirst[0]?.id ?? 0;
  const made = oldestFirst.filter((entry) => entry.equals === entry.id && now.has(entry.id)).map((entry) => entry.id);
  const held = moves.filter((move) => isHeld(move, madeFrom, now, oldest)).map((move) => move.id);
  return new Set([...made, ...held]);
}

/** Whether nothing that a move took back is in the files `now`, and what it brought back is. */
function isHeld(
  { from, to }: { from: number; to: number },
  madeFrom: ReadonlyMap<number, number>,
  now: ReadonlySet<number>,
  oldest: number,
): boolean {
  let firstTaken: number | undefined;
  let [left, reached]: (number | undefined)[] = [from, to];
  // A state is younger than the one that it was made from.
  while (left !== undefined && left !== reached) {
    if (reached === undefined || left > reached) {
      firstTaken = left;
      left = madeFrom.get(left);
    } else reached = madeFrom.get(reached);
  }
  const isUndo = reached === to || to < oldest;
  return (firstTaken === undefined || !now.has(firstTaken)) && (isUndo || now.has(to));
}

const TITLES: Record<string, string> = {
  snapshot: "State recorded",
  turn: "Turn of an agent",
  command: "Changed in a terminal",
  undo: "Undo",
  redo: "Redo",
  restore: "Restored",
  revert: "One entry reverted",
  merge: "Changes of a run merged",
  quiet: "Files changed",
};

/** Kinds whose reason Freehold writes. */
const RESTORES: ReadonlySet<string> = new Set(["undo", "redo", "restore", "revert"]);

/** The title of an entry: the prompt or command that led to it as it was typed, or the reason that Freehold gives. */
export function entryTitle(entry: HistoryEntry): string {
  const { by, prompt } = entry.who;
  const reason = prompt || entry.why;
  if (reason === "terminal" && by === "terminal") return TITLES["command"] ?? "";
  // It was recorded because something else was about to happen. What matters is that files had changed by then.
  if (entry.kind === "snapshot" && reason.startsWith("found before")) return TITLES["quiet"] ?? "";
  if (reason === "") return TITLES[entry.kind] ?? entry.kind;
  return RESTORES.has(entry.kind) || by === "unknown" ? reason.charAt(0).toUpperCase() + reason.slice(1) : reason;
}

/** Who did it, for the owner. What was done with an API token of theirs was done by them. */
export function actorText(who: string): string {
  if (who === "owner") return translate("you");
  // A command makes a token for itself, with its own name and a random suffix.
  const token = /^token:(.+?)(?:-[0-9a-f]{8})?$/.exec(who)?.[1];
  return token === undefined ? who : `you, with token ${token}`;
}

const ORIGINS: Record<string, string> = {
  ssh: "over SSH",
  recovery_page: "on the recovery page",
  command_line: "on the command line",
  channel: "through a channel",
};

export function entryActor(entry: HistoryEntry): string {
  const { by, agent, terminal, token, via } = entry.who;
  switch (by) {
    case "agent":
      return agent ?? "the agent";
    case "terminal":
      return terminal ? `terminal ${terminal}` : "a terminal";
    case "ssh":
      return "ssh";
    case "owner":
      // Freehold 0.1.0 stored a token as the agent.
      if (token || agent) return actorText(token ? `token:${token}` : (agent ?? ""));
      return via && via in ORIGINS ? `you, ${ORIGINS[via]}` : translate("you");
    default:
      return "found on disk";
  }
}

/** "2 added, 1 changed", or "no changes". */
export function changeCounts(entry: Pick<HistoryEntry, "added" | "changed" | "removed">): string {
  const parts = [
    entry.added > 0 && `${entry.added} added`,
    entry.changed > 0 && `${entry.changed} changed`,
    entry.removed > 0 && `${entry.removed} removed`,
  ].filter(Boolean);
  return parts.length > 0 ? parts.join(", ") : "no changes";
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

/** So many lines of a diff are drawn before more are asked for. */
export const SHOWN_LINES = 2_000;
/** And so many with each press. */
export const MORE_LINES = 5_000;
const MAX_LENGTH_OF_LINE = 100;

/** The lines of a unified diff with their numbers on both sides: as many as are wanted, fewer when they are long. */
export function diffLines(text: string, wanted = SHOWN_LINES): { lines: DiffLine[]; more: number } {
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
  let [count, length] = [0, 0];
  while (count < Math.min(lines.length, wanted) && length < wanted * MAX_LENGTH_OF_LINE)
    length += Math.min(lines[count++]?.text.length ?? 0, MAX_LINE);
  return { lines: lines.slice(0, count), more: lines.length - count };
}

/** A turn of a session. */
export interface Turn {
  session: string;
  turn: number;
}

/** The turn that made an entry; null when something else did. */
export function turnOf(entry: HistoryEntry): Turn | null {
  const { session, turn } = entry.who;
  return entry.kind === "turn" && session && turn && /^\d+$/.test(turn) ? { session, turn: Number(turn) } : null;
}

export type HistoryAction =
  | { action: "undo"; entry?: number }
  | { action: "redo" }
  | { action: "restore"; entry: number; paths: string[] }
  | {
      action: "revert";
      entry: number;
      choose: Record<string, "old" | "mine">;
      since?: number;
      of?: { session: string; turn: number };
      again?: boolean;
    };

export function actionTitle(action: HistoryAction): string {
  switch (action.action) {
    case "undo":
      return action.entry === undefined ? "Undo the last change" : `Undo everything since #${action.entry}`;
    case "redo":
      return "Redo the last undo";
    case "restore":
      return action.paths.length === 1
        ? `Restore ${action.paths[0]}`
        : `Restore everything as it was at #${action.entry}`;
    case "revert":
      if (action.of) return action.again ? "Redo this turn" : "Undo this turn";
      return `Revert only #${action.entry}`;
  }
}

export interface PlannedStep {
  path: string;
  fate: string;
  text: string;
  detail: string;
}

/** The steps of a plan, in the words of the API. The recovery page and the command line show the same list. */
export function shownSteps(steps: readonly Record<string, string>[]): PlannedStep[] {
  return steps.map((step) => ({
    path: step["path"] ?? "",
    fate: step["fate"] ?? "",
    text: step["word"] ?? step["fate"] ?? "",
    detail: step["detail"] ?? "",
  }));
}

/** The request that carries out an action. */
export function requestOf(action: HistoryAction): { path: string; body: object } {
  const { action: verb, ...body } = { ...action, again: undefined };
  return { path: `/v1/history/${verb}`, body };
}
