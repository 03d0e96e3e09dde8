import { expect, test } from "vitest";
import { answerIndexOf, keyModeOf, MIN_VISIBLE, type PressedKey, wasSeen } from "./answerKeys.logic";

test("a number key answers, and while something is typed only with Alt", () => {
  const key = (more: Partial<PressedKey>): PressedKey => ({
    key: "2",
    code: "Digit2",
    altKey: false,
    ctrlKey: false,
    metaKey: false,
    shiftKey: false,
    typing: false,
    ...more,
  });
  expect(answerIndexOf(key({}), 4)).toBe(1);
  expect(answerIndexOf(key({ typing: true }), 4)).toBeNull();
  expect(answerIndexOf(key({ typing: true, altKey: true, key: "™" }), 4)).toBe(1);
  expect(answerIndexOf(key({}), 1)).toBeNull();
  expect(answerIndexOf(key({ ctrlKey: true }), 4)).toBeNull();
  expect(answerIndexOf(key({ key: "é", code: "KeyE" }), 4)).toBeNull();
});

test("with a session on the screen, keys answer its requests and not those in the bar", () => {
  expect(keyModeOf("dock", true)).toBe("page");
  expect(keyModeOf("bar", true)).toBe("none");
  expect(keyModeOf("bar", false)).toBe("alt");
});

test("a key answers only a request that was visible for a while", () => {
  expect(MIN_VISIBLE).toBe(600);
  expect(wasSeen(1_000, 1_599)).toBe(false);
  expect(wasSeen(1_000, 1_600)).toBe(true);
  expect(wasSeen(1_000, 900)).toBe(false);
  expect(wasSeen(null, 9_000)).toBe(false);
});
