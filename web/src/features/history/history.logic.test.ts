import { expect, test } from "vitest";
import type { HistoryEntry } from "../../client/api";
import {
  changeCounts,
  diffLines,
  effectiveEntries,
  entryActor,
  entryTitle,
  fileDiffs,
  requestOf,
  shownSteps,
} from "./history.logic";

const entry = (id: number, more: Partial<HistoryEntry> = {}): HistoryEntry => ({
  id,
  at: new Date(id * 1000).toISOString(),
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

test("undone entries are not in effect, and later ones are", () => {
  const undone = [entry(1), entry(2), entry(3), entry(4, { kind: "undo", equals: 2 })];
  expect([...effectiveEntries(undone)].sort()).toEqual([1, 2, 4]);
  expect([...effectiveEntries([...undone, entry(5)])].sort()).toEqual([1, 2, 4, 5]);
  expect([...effectiveEntries([...undone, entry(5, { kind: "redo", equals: 3 })])].sort()).toEqual([1, 2, 3, 5]);
  expect([...effectiveEntries([])]).toEqual([]);
});

test("an undo is in effect until it is taken back, also after later changes", () => {
  const twice = [
    entry(1),
    entry(2),
    entry(3),
    entry(4, { kind: "undo", equals: 2 }),
    entry(5, { kind: "undo", equals: 1 }),
  ];
  expect([...effectiveEntries(twice)].sort()).toEqual([1, 4, 5]);
  const written = [...twice, entry(6)];
  expect([...effectiveEntries(written)].sort()).toEqual([1, 4, 5, 6]);
  const redone = [...twice, entry(6, { kind: "redo", equals: 2 })];
  expect([...effectiveEntries(redone)].sort()).toEqual([1, 2, 4, 6]);
  expect([...effectiveEntries([...redone, entry(7)])].sort()).toEqual([1, 2, 4, 6, 7]);
  // Only the newest entries are loaded: the undo went back to a state that is not among them.
  expect([...effectiveEntries(written.slice(2))].sort()).toEqual([4, 5, 6]);
});

test("an entry has a title and an actor", () => {
  expect(entryTitle(entry(2))).toBe("Files changed");
  expect(entryTitle(entry(2, { why: "found at start" }))).toBe("Found at start");
  expect(entryTitle(entry(2, { kind: "turn", who: { by: "agent", prompt: "make it dark" } }))).toBe("make it dark");
  expect(entryActor(entry(2, { who: { by: "owner" } }))).toBe("you");
  expect(entryActor(entry(2, { who: { by: "owner", agent: "token:laptop" } }))).toBe("you, with token laptop");
  expect(entryActor(entry(2, { who: { by: "owner", via: "token", token: "laptop" } }))).toBe("you, with token laptop");
  expect(entryActor(entry(2, { who: { by: "owner", via: "browser", sign_in: "ab" } }))).toBe("you");
  expect(entryActor(entry(2, { who: { by: "owner", via: "recovery_page" } }))).toBe("you, on the recovery page");
  expect(entryActor(entry(2, { who: { by: "agent", agent: "claude" } }))).toBe("claude");
  expect(changeCounts(entry(1, { added: 2, removed: 1, changed: 0 }))).toBe("2 added, 1 removed");
});

test("an undo has the name that the command line gives it", () => {
  const why = "undo of entry 3";
  expect(entryTitle(entry(4, { kind: "undo", equals: 2, why, who: { by: "owner" } }))).toBe("Undo of entry 3");
  expect(entryTitle(entry(4, { kind: "undo", equals: 2 }))).toBe("Undo");
});

test("a command is shown as it was typed", () => {
  expect(entryTitle(entry(2, { kind: "command", why: "python3 -", who: { by: "ssh" } }))).toBe("python3 -");
  expect(entryTitle(entry(2, { why: "make, ls", who: { by: "terminal", terminal: "1" } }))).toBe("make, ls");
  expect(entryTitle(entry(2, { kind: "command", why: "terminal", who: { by: "terminal" } }))).toBe(
    "Changed in a terminal",
  );
});

test("a diff's lines have their numbers, and lines that look like headers are still lines", () => {
  const { lines } = diffLines(
    "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n--- old\n+++ new\n\\ No newline at end of file\n",
  );
  expect(lines.map((line) => [line.kind, line.old, line.new, line.text])).toEqual([
    ["hunk", null, null, "@@ -1,2 +1,2 @@"],
    ["same", 1, 1, "same"],
    ["removed", 2, null, "-- old"],
    ["added", null, 2, "++ new"],
    ["note", null, null, "No newline at end of file"],
  ]);
});

test("unexpected fields of a file are read as text", () => {
  expect(fileDiffs([{ path: "<b>", word: "added", added: 1, removed: null, text: 5, note: null }])).toEqual([
    { path: "<b>", word: "added", added: 1, removed: null, text: "", note: "" },
  ]);
});

test("a plan is shown in the words of the API", () => {
  const steps = shownSteps([{ path: "workspace/a", fate: "write", word: "restore", detail: "" }]);
  expect(steps).toEqual([{ path: "workspace/a", fate: "write", text: "restore", detail: "" }]);
});

test("an action becomes its request", () => {
  expect(requestOf({ action: "undo", entry: 3 })).toEqual({ path: "/v1/history/undo", body: { entry: 3 } });
  expect(requestOf({ action: "redo" })).toEqual({ path: "/v1/history/redo", body: {} });
});
