import { expect, test } from "vitest";
import { readKey, type Pressed } from "./shortcuts";

const press = (key: string, more: Partial<Pressed> = {}): Pressed => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  typing: false,
  ...more,
});

test("the palette opens from everywhere, even while typing", () => {
  expect(readKey(press("k", { ctrlKey: true, typing: true }), false)).toEqual({ do: "palette" });
  expect(readKey(press("K", { metaKey: true }), false)).toEqual({ do: "palette" });
});

test("g and a letter go to a page, but not while typing", () => {
  expect(readKey(press("g"), false)).toEqual({ do: "wait" });
  expect(readKey(press("f"), true)).toEqual({ do: "go", key: "f" });
  expect(readKey(press("g", { typing: true }), false)).toBeNull();
  expect(readKey(press("f", { ctrlKey: true }), true)).toBeNull();
});

test("a question mark shows the keys", () => {
  expect(readKey(press("?"), false)).toEqual({ do: "help" });
  expect(readKey(press("?", { typing: true }), false)).toBeNull();
});
