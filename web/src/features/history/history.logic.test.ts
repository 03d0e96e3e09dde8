import { expect, test } from "vitest";
import type { HistoryEntry } from "../../client/api";
import { countsOf, diffLines, fileDiffs, inEffect, requestOf, stepsToShow, titleOf, whoOf } from "./history.logic";

const entry = (id: number, more: Partial<HistoryEntry> = {}): HistoryEntry => ({
  id,
  at: id,
  kind: "quiet",
  who: { by: "unknown" },
  why: "",
  added: 0,
  changed: 1,
  removed: 0,
  lines_added: 0,
  lines_removed: 0,
  good: false,
  equals: id,
  notes: [],
  ...more,
});

test("what was undone is not in effect, and what came after is", () => {
  const undone = [entry(1), entry(2), entry(3), entry(4, { kind: "undo", equals: 2 })];
  expect([...inEffect(undone)].sort()).toEqual([1, 2, 4]);
  expect([...inEffect([...undone, entry(5)])].sort()).toEqual([1, 2, 5]);
  expect([...inEffect([...undone, entry(5, { kind: "redo", equals: 3 })])].sort()).toEqual([1, 2, 3, 5]);
  expect([...inEffect([])]).toEqual([]);
});

test("an entry says why and by whom in words", () => {
  expect(titleOf(entry(2))).toBe("Files changed");
  expect(titleOf(entry(2, { why: "found at start" }))).toBe("Found at start");
  expect(titleOf(entry(4, { kind: "undo", equals: 2 }))).toBe("Undone: back to the state of #2");
  expect(titleOf(entry(2, { kind: "turn", who: { by: "agent", prompt: "make it dark" } }))).toBe("Make it dark");
  expect(whoOf(entry(2, { who: { by: "owner" } }))).toBe("you");
  expect(whoOf(entry(2, { who: { by: "owner", agent: "token:laptop" } }))).toBe("you, by token laptop");
  expect(whoOf(entry(2, { who: { by: "agent", agent: "claude" } }))).toBe("claude");
  expect(countsOf(entry(1, { added: 2, removed: 1, changed: 0 }))).toBe("2 added, 1 removed");
});

test("a diff's lines have their numbers, and lines that look like headers are still lines", () => {
  const { lines } = diffLines("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n--- old\n+++ new\n\\ No newline at end of file\n");
  expect(lines.map((line) => [line.kind, line.old, line.new, line.text])).toEqual([
    ["hunk", null, null, "@@ -1,2 +1,2 @@"],
    ["same", 1, 1, "same"],
    ["removed", 2, null, "-- old"],
    ["added", null, 2, "++ new"],
    ["note", null, null, "No newline at end of file"],
  ]);
});

test("what the keeper says of a file is taken as text, whatever it is", () => {
  expect(fileDiffs([{ path: "<b>", word: "added", added: 1, removed: null, text: 5, note: null }])).toEqual([
    { path: "<b>", word: "added", added: 1, removed: null, text: "", note: "" },
  ]);
});

test("a plan leaves out what nobody asks", () => {
  const steps = stepsToShow([
    { path: "workspace", fate: "time", detail: "" },
    { path: "workspace/a", fate: "write", detail: "" },
  ]);
  expect(steps).toEqual([{ path: "workspace/a", fate: "write", words: "written", detail: "" }]);
});

test("an action becomes its request", () => {
  expect(requestOf({ action: "undo", entry: 3 })).toEqual({ path: "/v1/history/undo", body: { entry: 3 } });
  expect(requestOf({ action: "redo" })).toEqual({ path: "/v1/history/redo", body: {} });
});
