export interface ChangedLine {
  kind: "same" | "added" | "removed" | "gap" | "note";
  text: string;
}

/** Unchanged lines that are shown before and after a change. */
const CONTEXT = 3;

/** A change as lines: every changed line, and unchanged ones around it, a few or all. */
export function changedLines(old: string, changed: string, context: number = CONTEXT): ChangedLine[] {
  const before = linesOf(old);
  const after = linesOf(changed);
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (
    tail < before.length - head &&
    tail < after.length - head &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  )
    tail++;
  const as = (kind: ChangedLine["kind"], lines: readonly string[]) =>
    lines.map((line): ChangedLine => ({ kind, text: line }));
  const gap = (count: number): ChangedLine[] =>
    count > 0 ? [{ kind: "gap", text: count === 1 ? "1 unchanged line" : `${count} unchanged lines` }] : [];
  return [
    ...gap(head - context),
    ...as("same", before.slice(Math.max(0, head - context), head)),
    ...as("removed", before.slice(head, before.length - tail)),
    ...as("added", after.slice(head, after.length - tail)),
    ...as("same", tail === 0 ? [] : after.slice(after.length - tail, after.length - Math.max(0, tail - context))),
    ...gap(tail - context),
    ...lastLineBreak(old, changed),
  ];
}

const linesOf = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

/** A change of the line break at the end of a file cannot be seen in its lines, so it gets a line of its own. */
function lastLineBreak(old: string, changed: string): ChangedLine[] {
  if (changed === "" || changed.endsWith("\n") === (old === "" || old.endsWith("\n"))) return [];
  return [
    {
      kind: "note",
      text: changed.endsWith("\n") ? "Adds a line break at the end" : "No line break at the end",
    },
  ];
}
