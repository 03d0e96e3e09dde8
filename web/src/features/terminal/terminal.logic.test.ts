import { expect, test } from "vitest";
import {
  canReconnect,
  chooseTerminal,
  nameTerminal,
  noteOpened,
  plainTitle,
  readNames,
  readOpened,
  safeLink,
  softKeyBytes,
  terminalKeyAction,
  withControl,
} from "./terminal.logic";

test("only web links are opened from a terminal", () => {
  expect(safeLink("https://example.com/a")).toBe("https://example.com/a");
  expect(safeLink("javascript:alert(1)")).toBeNull();
  expect(safeLink("file:///etc/passwd")).toBeNull();
  expect(safeLink("data:text/html,<script>")).toBeNull();
  expect(safeLink("not a link")).toBeNull();
});

test("a title is short and visible", () => {
  expect(plainTitle("vim\u0007\u202e x")).toBe("vim x");
  expect(plainTitle("x".repeat(100))).toHaveLength(25);
});

test("the terminal that was shown is shown again", () => {
  const row = (id: string) => ({
    id,
    command: [],
    rows: 1,
    columns: 1,
    began: "1970-01-01T00:00:00Z",
    viewers: 0,
    ended: false,
  });
  expect(chooseTerminal([row("a"), row("b")], "a")).toBe("a");
  expect(chooseTerminal([row("a"), row("b")], "gone")).toBe("b");
  expect(chooseTerminal([], "a")).toBeNull();
});

test("a lost connection is opened again, and one to an ended program is not", () => {
  expect([1006, 1012, 4410, 4404, 4401].map(canReconnect)).toEqual([true, true, false, false, false]);
});

test("the row of keys sends the right bytes", () => {
  expect([withControl("c"), withControl("C"), withControl("["), withControl("é"), withControl("ab")]).toEqual([
    "\x03",
    "\x03",
    "\x1b",
    "é",
    "ab",
  ]);
  expect([
    softKeyBytes("Esc", false),
    softKeyBytes("Tab", false),
    softKeyBytes("↑", false),
    softKeyBytes("←", true),
  ]).toEqual(["\x1b", "\t", "\x1b[A", "\x1bOD"]);
});

test("a key belongs to the program unless the page uses it", () => {
  const press = (key: string, more: object = {}) => ({
    type: "keydown",
    key,
    ctrlKey: true,
    metaKey: false,
    shiftKey: false,
    altKey: false,
    ...more,
  });
  expect(terminalKeyAction(press("f"), false)).toBe("find");
  expect(terminalKeyAction(press("f"), true)).toBeNull();
  expect(terminalKeyAction(press("F", { shiftKey: true }), true)).toBe("find");
  expect(terminalKeyAction(press("c"), false)).toBeNull();
  expect(terminalKeyAction(press("C", { shiftKey: true }), false)).toBe("copy");
  expect(terminalKeyAction(press("V", { shiftKey: true }), false)).toBe("paste");
  expect(terminalKeyAction(press("v"), false)).toBeNull();
  expect(terminalKeyAction(press("f", { type: "keyup" }), false)).toBeNull();
});

test("a name stays with its terminal and is removed with it", () => {
  const held = new Map<string, string>();
  const store = {
    getItem: (key: string) => held.get(key) ?? null,
    setItem: (key: string, value: string) => void held.set(key, value),
  };
  nameTerminal("a", " build ", ["a", "b"], store);
  expect(nameTerminal("b", "logs", ["a", "b"], store)).toEqual({ a: "build", b: "logs" });
  expect(nameTerminal("b", "", ["b"], store)).toEqual({});
  held.set("freehold.terminal.names", "nonsense");
  expect(readNames(store)).toEqual({});
});

test("a terminal that was open when the page was cut off is known, and one that was left is not", () => {
  const kept = new Map<string, string>();
  const store = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  };
  noteOpened("bomb", store);
  expect(readOpened(store)).toBe("bomb");
  noteOpened(null, store);
  expect(readOpened(store)).toBeNull();
});

test("a title of megabytes is read only at its start", () => {
  expect(plainTitle("\u200b".repeat(3_000_000))).toBe("");
  expect(plainTitle("t".repeat(3_000_000))).toHaveLength(25);
});
