import { expect, test } from "vitest";
import type { HistoryEntry } from "../../client/api";
import { diffLines } from "../history/history.logic";
import { addressOf, choices, keepComments, keptComments, promptOf, readPoints, rowsOf, withComment, type Comment } from "./diff.logic";

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
  id, at: 0, kind, who: {}, why: "", added: 0, changed: 0, removed: 0, lines_added: null, lines_removed: null, good: false, equals: id, notes: [],
});

test("an address names two points, and nonsense becomes the last change", () => {
  const points = { old: "good", new: "7" };
  expect(readPoints(new URLSearchParams(addressOf(points).split("?")[1]))).toEqual(points);
  expect(readPoints(new URLSearchParams("old=<script>&new=-1"))).toEqual({ old: "before", new: "now" });
});

test("turns are offered apart, and a point that is not listed is still there", () => {
  const groups = choices([entry(3, "turn"), entry(2, "quiet")], "old", "1");
  expect(groups.map((group) => group.choices.map((one) => one.value))).toEqual([["before", "good"], ["3"], ["1", "2"]]);
});

test("what is not shown is counted, and shown when asked for", () => {
  const { lines } = diffLines(UNIFIED);
  const folded = rowsOf(lines, new Set(), null);
  expect(folded.map((row) => (row.kind === "gap" ? `${row.key} ${row.count}` : `${row.old ?? ""}|${row.new ?? ""} ${row.text}`))).toEqual([
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
  expect(folded.flatMap((row) => (row.kind !== "gap" && row.change !== null ? [row.text] : []))).toEqual(["four", "eleven"]);
  const open = rowsOf(lines, new Set(["gap-6", "rest"]), WHOLE);
  expect(open.slice(6, 10)).toMatchObject([{ text: "six", old: 6, new: 7 }, { text: "seven" }, { text: "eight" }, { text: "nine", old: 9, new: 10 }]);
  expect(open.at(-1)).toMatchObject({ kind: "same", text: "twelve", old: 12, new: 12 });
});

const comment = (line: number, text: string, side: "old" | "new" = "new"): Comment => ({ path: "workspace/src/a.py", side, line, quote: `line ${line}`, text });

test("a comment is put in its place, changed, and taken out when empty", () => {
  const two = withComment(withComment([], comment(9, "b")), comment(2, "a"));
  expect(two.map((one) => one.line)).toEqual([2, 9]);
  expect(withComment(two, comment(2, "c")).map((one) => one.text)).toEqual(["c", "b"]);
  expect(withComment(two, comment(2, "  "))).toHaveLength(1);
  expect(withComment(two, comment(2, "of the old line", "old"))).toHaveLength(3);
});

test("comments become one prompt that says where and what", () => {
  expect(promptOf([comment(2, "why?"), comment(4, "keep it", "old")], "")).toBe(
    "Please look at these comments on what was changed:\n\nsrc/a.py:2\n> line 2\nwhy?\n\nsrc/a.py:4 (a line that was removed or replaced; the number is the old one)\n> line 4\nkeep it",
  );
  expect(promptOf([{ ...comment(1, "x"), path: "home/.bashrc" }], "Mend this")).toMatch(/^Mend this\n\n\/home\/agent\/\.bashrc:1\n/);
});

test("comments outlive a reload", () => {
  const held = new Map<string, string>();
  const store = { getItem: (key: string) => held.get(key) ?? null, setItem: (key: string, value: string) => void held.set(key, value), removeItem: (key: string) => void held.delete(key) };
  keepComments("1..2", [comment(1, "x")], store);
  expect(keptComments("1..2", store)).toEqual([comment(1, "x")]);
  expect(keptComments("1..3", store)).toEqual([]);
  keepComments("1..2", [], store);
  expect(held.size).toBe(0);
});
