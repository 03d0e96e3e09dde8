import { expect, test } from "vitest";
import { cutLine, cutText, PART_LENGTH, shortLine } from "./plainText.logic";

test("a text is cut into parts, and nothing is lost", () => {
  const text = "👩‍👩‍👧 x".repeat(10_000);
  const { shown, hidden } = cutText(text, 2);
  expect(shown.join("").length + hidden).toBe(text.length);
  expect(Math.max(...shown.map((part) => part.length))).toBeLessThanOrEqual(PART_LENGTH);
  for (const part of shown) expect(() => encodeURIComponent(part)).not.toThrow();
  expect(cutText(text, 1_000).shown.join("")).toBe(text);
  expect(cutText("", 1)).toEqual({ shown: [], hidden: 0 });
});

test("a line says how much of it is missing", () => {
  expect(shortLine("abc", 3)).toBe("abc");
  expect(shortLine("abcdef", 3)).toBe("abc… (3 more characters)");
  expect(cutLine("a😀", 2)).toEqual({ shown: "a", hidden: 2 });
});
