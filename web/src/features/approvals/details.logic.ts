import { changedLines, newBudget } from "../diff/changedLines.logic";
import type { DiffLine } from "../history/history.logic";
import type { RequestDetail } from "./approvals.logic";

/** Characters of a request that are drawn at once. A line costs as much as a few characters. */
export const PAGE_LENGTH = 20_000;
const LINE_COST = 20;
const DETAIL_COST = 200;

export interface DrawnDetail {
  detail: RequestDetail;
  /** The text, as far as it is drawn. For a change, its lines. */
  text: string;
  lines: readonly DiffLine[];
}

/** The details up to so many characters, and how many characters are left out. `whole` are changes with all lines. */
export function drawnDetails(
  details: readonly RequestDetail[],
  length: number,
  whole: ReadonlySet<number>,
): { drawn: DrawnDetail[]; hidden: number } {
  const drawn: DrawnDetail[] = [];
  let [room, hidden] = [length, 0];
  const all = listLines(details, whole);
  for (const [index, detail] of details.entries()) {
    const lines = all[index] ?? [];
    const size = lines.reduce((sum, line) => sum + line.text.length + 1, 0);
    if (room <= 0) {
      hidden += size + detail.label.length;
      continue;
    }
    room -= DETAIL_COST;
    const kept: DiffLine[] = [];
    for (const line of lines) {
      if (room <= 0) break;
      const text = line.text.length > room ? cut(line.text, room) : line.text;
      kept.push(text === line.text ? line : { ...line, text });
      room -= text.length + LINE_COST;
    }
    hidden += size - kept.reduce((sum, line) => sum + line.text.length + 1, 0);
    drawn.push({ detail, lines: kept, text: kept.map((line) => line.text).join("\n") });
  }
  return { drawn, hidden };
}

function listLines(details: readonly RequestDetail[], whole: ReadonlySet<number>): DiffLine[][] {
  const budget = newBudget();
  return details.map((detail, index) =>
    detail.kind === "diff"
      ? changedLines(detail.old ?? "", detail.text, budget, whole.has(index) ? Number.POSITIVE_INFINITY : undefined)
      : detail.text.split("\n").map((text) => ({ kind: "same", old: null, new: null, text })),
  );
}

/** The start of a line. No character is cut in two. */
function cut(text: string, length: number): string {
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? length - 1 : length);
}

export const countLines = (details: readonly RequestDetail[]): number =>
  listLines(details, new Set()).reduce((sum, lines) => sum + lines.length, 0);
