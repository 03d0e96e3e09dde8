import { expect, test } from "vitest";
import { isSameValue } from "./sameValue";

test("two replies that say the same are the same value", () => {
  const reply = () => JSON.parse('[{"id": "a", "tags": ["x", null], "at": 1.5}, {"id": "b", "tags": []}]') as unknown;
  expect(isSameValue(reply(), reply())).toBe(true);
  expect(isSameValue(null, null)).toBe(true);
  expect(isSameValue("a", "a")).toBe(true);
});

test.each([
  [
    [1, 2],
    [2, 1],
  ],
  [[1], [1, 2]],
  [{ a: 1 }, { b: 1 }],
  [{ a: undefined }, { b: undefined }],
  [{ a: 1 }, { a: 1, b: 2 }],
  [[], {}],
  [null, {}],
  ["1", 1],
  [new Map([["a", 1]]), new Map([["a", 2]])],
  [new Map(), new Map()],
])("%j is not %j", (one, other) => {
  expect(isSameValue(one, other)).toBe(false);
});
