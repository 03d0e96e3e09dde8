import { expect, test } from "vitest";
import { findItems, stepFrom } from "./find.logic";
import { transcriptItems } from "./transcript.logic";

const items = transcriptItems([
  { seq: 1, at: "", turn: 1, kind: "turn.started", data: { prompt: { text: "Make it DARK" } } },
  {
    seq: 2,
    at: "",
    turn: 1,
    kind: "tool",
    data: { id: "t", title: "Edit", content: [{ type: "diff", path: "a.css", old: "x", new: "dark" }] },
  },
  { seq: 3, at: "", turn: 1, kind: "message", data: { text: "It is light." } },
  { seq: 4, at: "", turn: 1, kind: "message", data: { text: "Now it is dark." } },
]);

test("text is found in every kind of item, in any case", () => {
  expect(findItems(items, "dark")).toEqual([0, 1, 3]);
  expect(findItems(items, " LIGHT ")).toEqual([2]);
  expect(findItems(items, "")).toEqual([]);
});

test("where nothing has the words in a row, items with all of them are found", () => {
  expect(findItems(items, "dark now")).toEqual([3]);
  expect(findItems(items, "dark light")).toEqual([]);
});

test("the search starts with the newest match and goes in a circle", () => {
  expect(stepFrom([0, 1, 3], null, -1)).toBe(3);
  expect(stepFrom([0, 1, 3], 3, -1)).toBe(1);
  expect(stepFrom([0, 1, 3], 0, -1)).toBe(3);
  expect(stepFrom([0, 1, 3], 3, 1)).toBe(0);
  expect(stepFrom([], 3, 1)).toBeNull();
});
