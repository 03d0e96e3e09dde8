import { expect, test } from "vitest";
import { type PressedKey, shortcutOf } from "./shortcuts.logic";

const press = (key: string, more: Partial<PressedKey> = {}): PressedKey => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  typing: false,
  ...more,
});

test("the command palette opens everywhere, even while typing", () => {
  expect(shortcutOf(press("k", { ctrlKey: true, typing: true }), false)).toEqual({ action: "palette" });
  expect(shortcutOf(press("K", { metaKey: true }), false)).toEqual({ action: "palette" });
});

test("g and a letter open a page, but not while typing", () => {
  expect(shortcutOf(press("g"), false)).toEqual({ action: "prefix" });
  expect(shortcutOf(press("f"), true)).toEqual({ action: "page", key: "f" });
  expect(shortcutOf(press("g", { typing: true }), false)).toBeNull();
  expect(shortcutOf(press("f", { ctrlKey: true }), true)).toBeNull();
});

test("a question mark shows the shortcuts", () => {
  expect(shortcutOf(press("?"), false)).toEqual({ action: "shortcuts" });
  expect(shortcutOf(press("?", { typing: true }), false)).toBeNull();
});
