import { expect, test } from "vitest";
import { changedLines } from "./changedLines.logic";

test("every changed line is shown, with a few lines around it", () => {
  const old = Array.from({ length: 9 }, (_, line) => `l${line}`);
  const made = old.map((line) => (line === "l4" ? "new" : line));
  const lines = changedLines(old.join("\n"), made.join("\n"));
  expect(lines.map((line) => `${line.kind[0]} ${line.text}`)).toEqual([
    "g 1 unchanged line",
    "s l1",
    "s l2",
    "s l3",
    "r l4",
    "a new",
    "s l5",
    "s l6",
    "s l7",
    "g 1 unchanged line",
  ]);
  expect(changedLines("", "a\nb\n")).toEqual([
    { kind: "added", text: "a" },
    { kind: "added", text: "b" },
  ]);
  expect(changedLines("a\n", "a")).toEqual([
    { kind: "same", text: "a" },
    { kind: "note", text: "No line break at the end" },
  ]);
  expect(changedLines("a\na", "a")).toEqual([
    { kind: "same", text: "a" },
    { kind: "removed", text: "a" },
  ]);
});
