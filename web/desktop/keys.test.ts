import { expect, test } from "vitest";
import { keysFor } from "./keys";

test("characters of a phone become keys of X", () => {
  expect(keysFor("insertText", "aé€\n")).toEqual([0x61, 0xe9, 0x0100_20ac, 0xff0d]);
  expect(keysFor("insertParagraph", null)).toEqual([0xff0d]);
  expect(keysFor("deleteContentBackward", null)).toEqual([0xff08]);
  expect(keysFor("historyUndo", null)).toEqual([]);
});
