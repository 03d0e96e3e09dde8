import { MAX_LINE } from "../../../ui/plainText.logic";
import type { DiffLine } from "../../history/history.logic";

const CONTEXT = 3;
/** Lines and characters that all edits of one tool call show together. */
const MAX_LINES = 600;
const MAX_LENGTH = 60_000;
// Cells of the table that finds common lines. Beyond it the changed part is shown as removed and added as a whole.
const MAX_CELLS = 100_000;

const split = (text: string): string[] => {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
};

export interface EditDiff {
  lines: DiffLine[];
  /** How many lines are left out. */
  more: number;
}

type Step = { kind: "same" | "added" | "removed"; text: string };

/** The shortest list of steps from the old lines to the new ones. */
function diffSteps(old: readonly string[], now: readonly string[]): Step[] {
  const of =
    (kind: Step["kind"]) =>
    (text: string): Step => ({ kind, text });
  if (old.length * now.length > MAX_CELLS) return [...old.map(of("removed")), ...now.map(of("added"))];
  const width = now.length + 1;
  const common = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      common[i * width + j] =
        old[i] === now[j]
          ? (common[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(common[(i + 1) * width + j] ?? 0, common[i * width + j + 1] ?? 0);
  const found: Step[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      found.push({ kind: "same", text: old[i] ?? "" });
      i++;
      j++;
    } else if (
      i < old.length &&
      (j >= now.length || (common[(i + 1) * width + j] ?? 0) >= (common[i * width + j + 1] ?? 0))
    )
      found.push({ kind: "removed", text: old[i++] ?? "" });
    else found.push({ kind: "added", text: now[j++] ?? "" });
  }
  return found;
}

/** The edits of one tool call. What is beyond the limits is counted and left out. */
export function editDiffs<E extends { old: string; now: string }>(edits: readonly E[]): (E & EditDiff)[] {
  let [room, length] = [MAX_LINES, MAX_LENGTH];
  return edits.map((edit) => {
    const { lines, more } = editDiff(edit.old, edit.now);
    let count = 0;
    for (const line of lines) {
      if (count >= room || length <= 0) break;
      length -= Math.min(line.text.length, MAX_LINE);
      count++;
    }
    room -= count;
    return { ...edit, lines: lines.slice(0, count), more: more + lines.length - count };
  });
}

/** The changed lines of an edit with their numbers, and a few unchanged lines around them. */
export function editDiff(before: string, after: string): EditDiff {
  const [old, now] = [split(before), split(after)];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (
    tail < old.length - head &&
    tail < now.length - head &&
    old[old.length - 1 - tail] === now[now.length - 1 - tail]
  )
    tail++;
  const same = (text: string): Step => ({ kind: "same", text });
  const all = [
    ...old.slice(0, head).map(same),
    ...diffSteps(old.slice(head, old.length - tail), now.slice(head, now.length - tail)),
    ...old.slice(old.length - tail).map(same),
  ];
  const near = new Set<number>();
  all.forEach((step, at) => {
    if (step.kind !== "same") for (let by = -CONTEXT; by <= CONTEXT; by++) near.add(at + by);
  });
  const lines: DiffLine[] = [];
  let [left, right, skipped] = [1, 1, false];
  all.forEach((step, at) => {
    if (near.has(at)) {
      if (skipped) lines.push({ kind: "hunk", old: null, new: null, text: "⋯" });
      lines.push({
        kind: step.kind,
        old: step.kind === "added" ? null : left,
        new: step.kind === "removed" ? null : right,
        text: step.text,
      });
    }
    skipped = !near.has(at);
    if (step.kind !== "added") left++;
    if (step.kind !== "removed") right++;
  });
  return { lines: lines.slice(0, MAX_LINES), more: Math.max(0, lines.length - MAX_LINES) };
}

/** How many lines were added and removed. */
export function countChanges(lines: readonly DiffLine[]): { added: number; removed: number } {
  return {
    added: lines.filter((line) => line.kind === "added").length,
    removed: lines.filter((line) => line.kind === "removed").length,
  };
}
