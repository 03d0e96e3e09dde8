import { expect, test } from "vitest";
import type { ComparedFile, HistoryComparison, HistoryEntry } from "../../client/api";
import { diffLines } from "../history/history.logic";
import {
  type Comment,
  diffPath,
  downloadableVersions,
  isUnlisted,
  nextUnapproved,
  pointChoices,
  promptOf,
  readApproved,
  readComments,
  readPoints,
  rowsOf,
  showCommand,
  storeApproved,
  storeComments,
  withComment,
  withMoreFiles,
} from "./diff.logic";

const UNIFIED = `--- a/x
+++ b/x
@@ -3,3 +3,4 @@
 three
-four
+4
+four and a half
 five
@@ -10,2 +11,1 @@
 ten
-eleven
`;
const WHOLE = ["one", "two", "three", "4", "four and a half", "five", "six", "seven", "eight", "nine", "ten", "twelve"];

const entry = (id: number, kind: string): HistoryEntry => ({
  id,
  at: "2026-11-15T09:00:00Z",
  kind,
  who: {},
  why: "",
  added: 0,
  changed: 0,
  removed: 0,
  lines_added: null,
  lines_removed: null,
  good: false,
  equals: id,
  notes: [],
});

test("an address names two states, and an invalid one means the last change", () => {
  const points = { old: "good", new: "7" };
  expect(readPoints(new URLSearchParams(diffPath(points).split("?")[1]))).toEqual(points);
  expect(readPoints(new URLSearchParams("old=<script>&new=-1"))).toEqual({ old: "before", new: "now" });
});

test("turns are a group of their own, and a state that is not listed is still a choice", () => {
  const groups = pointChoices([entry(3, "turn"), entry(2, "quiet")], "old", "1");
  expect(groups.map((group) => group.choices.map((one) => one.value))).toEqual([["before", "good"], ["3"], ["1", "2"]]);
});

test("hidden lines are counted, and shown on demand", () => {
  const { lines } = diffLines(UNIFIED);
  const folded = rowsOf(lines, new Set(), null);
  expect(
    folded.map((row) =>
      row.kind === "gap" ? `${row.key} ${row.count}` : `${row.old ?? ""}|${row.new ?? ""} ${row.text}`,
    ),
  ).toEqual([
    "gap-0 2",
    "3|3 three",
    "4| four",
    "|4 4",
    "|5 four and a half",
    "5|6 five",
    "gap-6 4",
    "10|11 ten",
    "11| eleven",
    "rest null",
  ]);
  expect(folded.flatMap((row) => (row.kind !== "gap" && row.change !== null ? [row.text] : []))).toEqual([
    "four",
    "eleven",
  ]);
  const open = rowsOf(lines, new Set(["gap-6", "rest"]), WHOLE);
  expect(open.slice(6, 10)).toMatchObject([
    { text: "six", old: 6, new: 7 },
    { text: "seven" },
    { text: "eight" },
    { text: "nine", old: 9, new: 10 },
  ]);
  expect(open.at(-1)).toMatchObject({ kind: "same", text: "twelve", old: 12, new: 12 });
});

test("the rest of the file is offered after its last change only", () => {
  const { lines, more } = diffLines(UNIFIED, 4); // to the line 4
  expect(more).toBeGreaterThan(0);
  expect(rowsOf(lines, new Set(["rest"]), WHOLE, more).at(-1)).toMatchObject({ kind: "added", text: "4" });
});

const comment = (line: number, text: string, side: "old" | "new" = "new"): Comment => ({
  path: "workspace/src/a.py",
  side,
  line,
  quote: `line ${line}`,
  text,
});

test("a comment is added in order, changed, and removed when empty", () => {
  const two = withComment(withComment([], comment(9, "b")), comment(2, "a"));
  expect(two.map((one) => one.line)).toEqual([2, 9]);
  expect(withComment(two, comment(2, "c")).map((one) => one.text)).toEqual(["c", "b"]);
  expect(withComment(two, comment(2, "  "))).toHaveLength(1);
  expect(withComment(two, comment(2, "of the old line", "old"))).toHaveLength(3);
});

test("comments become one prompt with their lines", () => {
  expect(promptOf([comment(2, "why?"), comment(4, "keep it", "old")], "")).toBe(
    "Please address these comments on your changes:\n\nsrc/a.py:2\n> line 2\nwhy?\n\nsrc/a.py:4 (removed or replaced; this is the old line number)\n> line 4\nkeep it",
  );
  expect(promptOf([{ ...comment(1, "x"), path: "home/.bashrc" }], "Mend this")).toMatch(
    /^Mend this\n\n\/home\/agent\/\.bashrc:1\n/,
  );
});

test("comments survive a reload", () => {
  const held = new Map<string, string>();
  const store = {
    getItem: (key: string) => held.get(key) ?? null,
    setItem: (key: string, value: string) => void held.set(key, value),
    removeItem: (key: string) => void held.delete(key),
  };
  storeComments("1..2", [comment(1, "x")], store);
  expect(readComments("1..2", store)).toEqual([comment(1, "x")]);
  expect(readComments("1..3", store)).toEqual([]);
  storeComments("1..2", [], store);
  expect(held.size).toBe(0);
});

test("a long gap is opened in parts", () => {
  const whole = Array.from({ length: 5_000 }, (_, line) => `l${line}`);
  const lines = diffLines("@@ -4000,1 +4000,1 @@\n-a\n+l3999\n").lines;
  const opened = rowsOf(lines, new Set(["gap-0"]), whole);
  expect(opened.filter((row) => row.kind === "same")).toHaveLength(1_000);
  expect(opened.find((row) => row.kind === "gap")).toMatchObject({ key: "gap-0+", count: 2_999 });
  const more = rowsOf(lines, new Set(["gap-0", "gap-0+"]), whole);
  expect(more.filter((row) => row.kind === "same")[1_999]).toMatchObject({ old: 2_000, new: 2_000, text: "l1999" });
});

test("approved files are named at the end of the prompt, and the next one to look at follows", () => {
  expect(promptOf([], "", ["workspace/a.txt", "home/.bashrc"])).toBe(
    "I have looked at your changes.\n\nApproved, so leave these as they are:\na.txt\n/home/agent/.bashrc",
  );
  const files = ["a", "b", "c"].map((path) => ({ path }));
  expect(nextUnapproved(files, "b", ["b"])?.path).toBe("c");
  expect(nextUnapproved(files, "c", ["b", "c"])?.path).toBe("a");
  expect(nextUnapproved(files, "c", ["a", "b", "c"])).toBeNull();
});

test("approvals are kept with their comparison", () => {
  const held = new Map<string, string>();
  const store = {
    getItem: (key: string) => held.get(key) ?? null,
    setItem: (key: string, value: string) => void held.set(key, value),
    removeItem: (key: string) => void held.delete(key),
  };
  storeApproved("1..2", ["a"], store);
  expect(readApproved("1..2", store)).toEqual(["a"]);
  expect(readApproved("1..3", store)).toEqual([]);
  storeApproved("1..2", [], store);
  expect(held.size).toBe(0);
});

const comparisonOf = (total: number, ...paths: string[]) =>
  ({ old: null, new: { id: 4 }, files: paths.map((path) => ({ path })), total }) as unknown as HistoryComparison;

test("a page of files is added once, and only to the comparison that it belongs to", () => {
  const held = comparisonOf(3, "a", "b");
  const page = comparisonOf(3, "c");
  const both = withMoreFiles(withMoreFiles(held, page), page);
  expect(both.files.map((file) => file.path)).toEqual(["a", "b", "c"]);
  const other = { ...page, new: { id: 5 } } as HistoryComparison;
  expect(withMoreFiles(held, other)).toBe(held);
});

test("a file that is on a later page is looked for, and one that is listed or on no page is not", () => {
  const held = comparisonOf(3, "a", "b");
  expect(isUnlisted(held, "c")).toBe(true);
  expect(isUnlisted(held, "a")).toBe(false);
  expect(isUnlisted(comparisonOf(2, "a", "b"), "c")).toBe(false);
});

test("the versions that exist can be downloaded", () => {
  const file = { old_size: 10, new_size: null } as ComparedFile;
  expect(downloadableVersions(file, 3, null)).toEqual([{ side: "old", entry: 3, size: 10 }]);
  expect(downloadableVersions({ ...file, new_size: 20 }, 3, 4).map(({ side }) => side)).toEqual(["old", "new"]);
});

test("a shell takes the path of the command as it is", () => {
  expect(showCommand(3, "workspace/it's $HOME.bin")).toBe("freehold show '3:workspace/it'\\''s $HOME.bin' > 3-version");
});
