import { expect, test } from "vitest";
import { isUncertain, kept, keyFor, readKept, type Letter } from "./outbox.logic";

const letter = (more: Partial<Letter> = {}): Letter => ({ key: "k", text: "hello", files: [], images: [], when: "now", ...more });

test("what is written down is read again, and nonsense is not", () => {
  expect(readKept(kept([letter()]))).toEqual([letter()]);
  expect(kept([])).toBeNull();
  expect(readKept("{]")).toEqual([]);
  expect(readKept('[{"key": 1}]')).toEqual([]);
});

test("pictures too large to keep are not kept by half", () => {
  const large = letter({ key: "large", images: [{ mime: "image/png", data: "x".repeat(3_000_000) }] });
  expect(readKept(kept([large, letter()]))).toEqual([letter()]);
});

test("sent again unchanged it keeps its key, so that it never becomes two turns", () => {
  const fresh = () => "fresh";
  expect(keyFor({ text: "hello", files: [], images: [] }, letter(), fresh)).toBe("k");
  expect(keyFor({ text: "hello!", files: [], images: [] }, letter(), fresh)).toBe("fresh");
  expect(keyFor({ text: "hello", files: ["a"], images: [] }, letter(), fresh)).toBe("fresh");
  expect(keyFor({ text: "hello", files: [], images: [] }, null, fresh)).toBe("fresh");
});

test("only a gateway that is away leaves it uncertain", () => {
  expect([0, 502, 503, 504].every(isUncertain)).toBe(true);
  expect([400, 401, 409, 500].some(isUncertain)).toBe(false);
});
