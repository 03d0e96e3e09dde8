import { expect, test } from "vitest";
import { countChanges, editDiff } from "./editDiff.logic";

const drawn = (before: string, after: string) =>
  editDiff(before, after).lines.map(
    (line) =>
      `${line.kind === "added" ? "+" : line.kind === "removed" ? "-" : line.kind === "hunk" ? "@" : " "}${line.text}`,
  );

test("an edit in two places has two parts with the lines around them", () => {
  const lines = Array.from({ length: 20 }, (_, line) => `l${line}`);
  const changed = lines.map((line, at) => (at === 2 ? "two" : line)).filter((_, at) => at !== 15);
  expect(drawn(lines.join("\n"), changed.join("\n"))).toEqual([
    " l0",
    " l1",
    "-l2",
    "+two",
    " l3",
    " l4",
    " l5",
    "@⋯",
    " l12",
    " l13",
    " l14",
    "-l15",
    " l16",
    " l17",
    " l18",
  ]);
});

test("lines have the numbers of both sides", () => {
  const { lines } = editDiff("a\nb\nc\n", "a\nx\ny\nc\n");
  expect(lines.map((line) => [line.old, line.new])).toEqual([
    [1, 1],
    [2, null],
    [null, 2],
    [null, 3],
    [3, 4],
  ]);
  expect(countChanges(lines)).toEqual({ added: 2, removed: 1 });
});

test("a new file is all added, an emptied file all removed, an equal file has no changes", () => {
  expect(drawn("", "a\nb\n")).toEqual(["+a", "+b"]);
  expect(drawn("a\n", "")).toEqual(["-a"]);
  expect(drawn("a\n", "a\n")).toEqual([]);
});

test("a huge edit is fast and is cut", () => {
  const one = Array.from({ length: 50_000 }, (_, line) => `a${line}`).join("\n");
  const other = Array.from({ length: 50_000 }, (_, line) => `b${line}`).join("\n");
  const { lines, more } = editDiff(one, other);
  expect(lines).toHaveLength(600);
  expect(more).toBe(99_400);
});
