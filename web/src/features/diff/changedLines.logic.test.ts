import { expect, test } from "vitest";
import { changedLines, newBudget } from "./changedLines.logic";

const SIGNS = { added: "+", removed: "-", same: " ", hunk: "@", note: "!" } as const;
const drawn = (before: string, after: string) =>
  changedLines(before, after, newBudget()).map((line) => `${SIGNS[line.kind]}${line.text}`);

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
    "@6 unchanged lines",
    " l12",
    " l13",
    " l14",
    "-l15",
    " l16",
    " l17",
    " l18",
    "@1 unchanged line",
  ]);
});

test("lines have the numbers of both sides", () => {
  expect(changedLines("a\nb\nc\n", "a\nx\ny\nc\n", newBudget()).map((line) => [line.old, line.new])).toEqual([
    [1, 1],
    [2, null],
    [null, 2],
    [null, 3],
    [3, 4],
  ]);
});

test("new, emptied and equal files, and a line break at the end", () => {
  expect(drawn("", "a\nb\n")).toEqual(["+a", "+b"]);
  expect(drawn("a\n", "")).toEqual(["-a"]);
  expect(drawn("a\n", "a\n")).toEqual([]);
  expect(drawn("a\n", "a")).toEqual([" a", "!No line break at the end"]);
  expect(drawn("a", "b\n")).toEqual(["-a", "+b", "!Adds a line break at the end"]);
  expect(drawn("a\na", "a")).toEqual([" a", "-a"]);
});

test("every line of both sides is there, whatever the budget", () => {
  const before = Array.from({ length: 300 }, (_, line) => (line % 3 === 0 ? "same" : `a${line}`));
  const after = Array.from({ length: 300 }, (_, line) => (line % 3 === 0 ? "same" : `b${line}`));
  for (const cells of [0, 1_000_000]) {
    const lines = changedLines(before.join("\n"), after.join("\n"), { cells }, Number.POSITIVE_INFINITY);
    expect(lines.filter((line) => line.kind !== "added").map((line) => line.text)).toEqual(before);
    expect(lines.filter((line) => line.kind !== "removed").map((line) => line.text)).toEqual(after);
    expect(lines.filter((line) => line.kind === "same").length).toBe(cells === 0 ? 1 : 100);
  }
});

test("many changes together cost no more than their budget", () => {
  const budget = newBudget();
  const before = Array.from({ length: 300 }, (_, line) => `a${line}`).join("\n");
  const after = Array.from({ length: 300 }, (_, line) => `b${line}`).join("\n");
  for (let edit = 0; edit < 20; edit++) expect(changedLines(before, after, budget)).toHaveLength(600);
  expect(budget.cells).toBe(1_000_000 - 11 * 300 * 300);
});
