import type { DiffLine } from "../history/history.logic";
import { findCommonLines } from "./commonLines.logic";

/** A line without what white space says: its begin and end, and how much there is between words. */
const wordsOf = (line: string): string => line.trim().replaceAll(/\s+/g, " ");

/** Larger blocks are compared line by line, in their order. */
const MAX_COMPARED = 1_000_000;

/** The lines of a diff, where lines that differ in white space only are the same. */
export function ignoreWhitespace(lines: readonly DiffLine[]): DiffLine[] {
  const found: DiffLine[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    if (line?.kind !== "added" && line?.kind !== "removed") {
      if (line !== undefined) found.push(line);
      at += 1;
      continue;
    }
    const begin = at;
    while (isPartOfChange(lines[at])) at += 1;
    found.push(...mergeBlock(lines.slice(begin, at)));
  }
  return found;
}

const isPartOfChange = (line: DiffLine | undefined): boolean =>
  line?.kind === "added" || line?.kind === "removed" || line?.kind === "note";

function mergeBlock(block: readonly DiffLine[]): readonly DiffLine[] {
  const removed = block.filter((line) => line.kind === "removed");
  const added = block.filter((line) => line.kind === "added");
  const pairs = findPairs(
    removed.map((line) => wordsOf(line.text)),
    added.map((line) => wordsOf(line.text)),
  );
  if (pairs.length === 0) return block;
  const found: DiffLine[] = [];
  let [old, now] = [0, 0];
  for (const [toOld, toNow] of [...pairs, [removed.length, added.length] as const]) {
    found.push(...removed.slice(old, toOld), ...added.slice(now, toNow));
    const [before, after] = [removed[toOld], added[toNow]];
    if (before !== undefined && after !== undefined)
      found.push({ kind: "same", old: before.old, new: after.new, text: after.text });
    [old, now] = [toOld + 1, toNow + 1];
  }
  return found;
}

/** Which lines are the same, as pairs of places in growing order: as many as there can be. */
function findPairs(old: readonly string[], now: readonly string[]): [number, number][] {
  if (old.length * now.length > MAX_COMPARED)
    return old.flatMap((words, at) => (words === now[at] ? [[at, at] as [number, number]] : []));
  return findCommonLines(old, now);
}
