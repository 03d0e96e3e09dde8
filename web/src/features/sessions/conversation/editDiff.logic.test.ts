import { expect, test } from "vitest";
import { editDiffs } from "./editDiff.logic";

test("the changed lines of an edit are counted", () => {
  const [edit] = editDiffs([{ old: "a\nb\nc\n", now: "a\nx\ny\nc\n" }], 0);
  expect(edit).toMatchObject({ added: 2, removed: 1, more: 0 });
});

test("a huge edit is fast and is cut, and leaves no room for the next", () => {
  const old = Array.from({ length: 50_000 }, (_, line) => `a${line}`).join("\n");
  const now = Array.from({ length: 50_000 }, (_, line) => `b${line}`).join("\n");
  const edits = [
    { old, now },
    { old: "a", now: "b" },
  ];
  const [first, second] = editDiffs(edits, 0);
  expect(first?.lines).toHaveLength(600);
  expect(first).toMatchObject({ more: 99_400, added: 50_000, removed: 50_000 });
  expect(second?.lines).toHaveLength(0);
  expect(second?.more).toBe(2);
  expect(editDiffs(edits, 1).map((edit) => edit.lines.length)).toEqual([5_600, 0]);
  expect(editDiffs(edits, 20).map((edit) => edit.more)).toEqual([0, 0]);
});
