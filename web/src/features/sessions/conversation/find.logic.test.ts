import { expect, test } from "vitest";
import { found, step } from "./find.logic";
import { transcript } from "./transcript.logic";

const items = transcript([
  { seq: 1, at: "", turn: 1, kind: "turn.started", data: { prompt: { text: "Make it DARK" } } },
  { seq: 2, at: "", turn: 1, kind: "tool", data: { id: "t", title: "Edit", content: [{ type: "diff", path: "a.css", old: "x", new: "dark" }] } },
  { seq: 3, at: "", turn: 1, kind: "message", data: { text: "It is light." } },
  { seq: 4, at: "", turn: 1, kind: "message", data: { text: "Now it is dark." } },
]);

test("words are found wherever they were said or done, in any case", () => {
  expect(found(items, "dark")).toEqual([0, 1, 3]);
  expect(found(items, " LIGHT ")).toEqual([2]);
  expect(found(items, "")).toEqual([]);
});

test("one begins with the newest and goes around", () => {
  expect(step([0, 1, 3], null, -1)).toBe(3);
  expect(step([0, 1, 3], 3, -1)).toBe(1);
  expect(step([0, 1, 3], 0, -1)).toBe(3);
  expect(step([0, 1, 3], 3, 1)).toBe(0);
  expect(step([], 3, 1)).toBeNull();
});
