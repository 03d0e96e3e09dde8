import { MAX_LINE } from "../../../ui/plainText.logic";
import { changedLines, newBudget } from "../../diff/changedLines.logic";
import { type DiffLine, MORE_LINES } from "../../history/history.logic";

/** Lines that all edits of one tool call show together at first. Each press shows `MORE_LINES` more. */
const MAX_LINES = 600;
/** And characters, for each line that may be shown. */
const LINE_LENGTH = 100;

export interface EditDiff {
  lines: DiffLine[];
  /** How many lines are left out. */
  more: number;
  /** Of all lines, shown or not. */
  added: number;
  removed: number;
}

/** The edits of one tool call after so many presses of "more". What is beyond the limits is counted and left out. */
export function editDiffs<E extends { old: string; now: string }>(
  edits: readonly E[],
  presses: number,
): (E & EditDiff)[] {
  let room = MAX_LINES + presses * MORE_LINES;
  let length = room * LINE_LENGTH;
  const budget = newBudget();
  return edits.map((edit) => {
    const lines = changedLines(edit.old, edit.now, budget);
    let count = 0;
    for (const line of lines) {
      if (count >= room || length <= 0) break;
      length -= Math.min(line.text.length, MAX_LINE);
      count++;
    }
    room -= count;
    return { ...edit, lines: lines.slice(0, count), more: lines.length - count, ...countChanges(lines) };
  });
}

function countChanges(lines: readonly DiffLine[]): { added: number; removed: number } {
  return {
    added: lines.filter((line) => line.kind === "added").length,
    removed: lines.filter((line) => line.kind === "removed").length,
  };
}
