import { expect, test } from "vitest";
import { changedLines, countLines } from "./lines.logic";

const drawn = (before: string, after: string) => changedLines(before, after).lines.map((line) => `${line.kind === "added" ? "+" : line.kind === "removed" ? "-" : line.kind === "hunk" ? "@" : " "}${line.text}`);

test("an edit in two places is two pieces with what is around them", () => {
  const lines = Array.from({ length: 20 }, (_, line) => `l${line}`);
  const changed = lines.map((line, at) => (at === 2 ? "two" : line)).filter((_, at) => at !== 15);
  expect(drawn(lines.join("\n"), changed.join("\n"))).toEqual([" l0", " l1", "-l2", "+two", " l3", " l4", " l5", "@⋯", " l12", " l13", " l14", "-l15", " l16", " l17", " l18"]);
});

test("numbers are those of each side", () => {
  const { lines } = changedLines("a\nb\nc\n", "a\nx\ny\nc\n");
  expect(lines.map((line) => [line.old, line.new])).toEqual([[1, 1], [2, null], [null, 2], [null, 3], [3, 4]]);
  expect(countLines(lines)).toEqual({ added: 2, removed: 1 });
});

test("a new file is all added, an emptied one all removed, the same one nothing", () => {
  expect(drawn("", "a\nb\n")).toEqual(["+a", "+b"]);
  expect(drawn("a\n", "")).toEqual(["-a"]);
  expect(drawn("a\n", "a\n")).toEqual([]);
});

test("huge edits take no huge time, and are cut", () => {
  const one = Array.from({ length: 50_000 }, (_, line) => `a${line}`).join("\n");
  const other = Array.from({ length: 50_000 }, (_, line) => `b${line}`).join("\n");
  const { lines, more } = changedLines(one, other);
  expect(lines).toHaveLength(1_000);
  expect(more).toBe(99_000);
});
