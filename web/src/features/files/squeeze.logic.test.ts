import { expect, test } from "vitest";
import { squeeze, unsqueeze } from "./squeeze.logic";

test("a squeezed text has the words and lines, and knows where they were", () => {
  const original = "  one  two \n\n\tthree";
  const squeezed = squeeze(original);
  expect(squeezed.text).toBe("one two\n\nthree");
  const at = (word: string) => squeezed.text.indexOf(word);
  expect(original.slice(...unsqueeze(squeezed, at("two"), at("two") + 3))).toBe("two");
  expect(original.slice(...unsqueeze(squeezed, at("three"), squeezed.text.length))).toBe("three");
  expect(unsqueeze(squeezed, squeezed.text.length, squeezed.text.length)).toEqual([original.length, original.length]);
  expect(squeeze("a\n").text).toBe("a\n");
});
