import type { DiffLine } from "../history/history.logic";
import { findCommonLines } from "./commonLines.logic";

/** Unchanged lines that are shown before and after a change. */
const CONTEXT = 3;
/** Of one change. Beyond it the part between the first and the last difference is shown as removed and added. */
const MAX_CELLS = 100_000;
/** Of all changes together that are shown at once: an agent decides how many there are. */
const MAX_CELLS_TOGETHER = 1_000_000;

/** What may still be spent on finding common lines. Changes that are shown together share one. */
export interface ComparisonBudget {
  cells: number;
}

export const newBudget = (): ComparisonBudget => ({ cells: MAX_CELLS_TOGETHER });

/**
 * The one way to show what an edit changes, before it is allowed and after it was done: every changed line with its
 * numbers on both sides, and unchanged ones around it, a few or all. Empty when nothing changes.
 */
export function changedLines(
  before: string,
  after: string,
  budget: ComparisonBudget,
  context: number = CONTEXT,
): DiffLine[] {
  if (before === after) return [];
  const all = [...compareLines(linesOf(before), linesOf(after), budget), ...lastLineBreak(before, after)];
  return foldUnchanged(all, context);
}

function compareLines(old: readonly string[], now: readonly string[], budget: ComparisonBudget): DiffLine[] {
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (
    tail < old.length - head &&
    tail < now.length - head &&
    old[old.length - 1 - tail] === now[now.length - 1 - tail]
  )
    tail++;
  const [oldEnd, nowEnd] = [old.length - tail, now.length - tail];
  const between = findPairs(old.slice(head, oldEnd), now.slice(head, nowEnd), budget);
  const found: DiffLine[] = [];
  let [left, right] = [0, 0];
  const goTo = (toLeft: number, toRight: number) => {
    for (; left < toLeft; left++) found.push({ kind: "removed", old: left + 1, new: null, text: old[left] ?? "" });
    for (; right < toRight; right++) found.push({ kind: "added", old: null, new: right + 1, text: now[right] ?? "" });
  };
  const keepOne = () => {
    found.push({ kind: "same", old: ++left, new: ++right, text: old[left - 1] ?? "" });
  };
  while (left < head) keepOne();
  for (const [i, j] of between) {
    goTo(head + i, head + j);
    keepOne();
  }
  goTo(oldEnd, nowEnd);
  while (left < old.length) keepOne();
  return found;
}

function findPairs(old: readonly string[], now: readonly string[], budget: ComparisonBudget): [number, number][] {
  const cells = old.length * now.length;
  if (cells > Math.min(MAX_CELLS, budget.cells)) return [];
  budget.cells -= cells;
  return findCommonLines(old, now);
}

/** Unchanged lines that are far from every change become one line that counts them. */
function foldUnchanged(all: readonly DiffLine[], context: number): DiffLine[] {
  if (context === Number.POSITIVE_INFINITY) return [...all];
  const near = new Set<number>();
  all.forEach((line, at) => {
    if (line.kind !== "same") for (let by = -context; by <= context; by++) near.add(at + by);
  });
  const lines: DiffLine[] = [];
  let skipped = 0;
  const closeGap = () => {
    if (skipped > 0) lines.push({ kind: "hunk", old: null, new: null, text: countUnchanged(skipped) });
    skipped = 0;
  };
  all.forEach((line, at) => {
    if (!near.has(at)) {
      skipped++;
      return;
    }
    closeGap();
    lines.push(line);
  });
  closeGap();
  return lines;
}

const countUnchanged = (count: number): string => (count === 1 ? "1 unchanged line" : `${count} unchanged lines`);

const linesOf = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

/** A change of the line break at the end of a file cannot be seen in its lines, so it gets a line of its own. */
function lastLineBreak(old: string, changed: string): DiffLine[] {
  if (changed === "" || changed.endsWith("\n") === (old === "" || old.endsWith("\n"))) return [];
  const text = changed.endsWith("\n") ? "Adds a line break at the end" : "No line break at the end";
  return [{ kind: "note", old: null, new: null, text }];
}
