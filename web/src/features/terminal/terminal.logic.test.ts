import { expect, test } from "vitest";
import { bytesOf, chooseTerminal, comesBack, nameTerminal, plainTitle, readNames, readTerminalKey, safeLink, withControl } from "./terminal.logic";

test("only the web is opened from a terminal", () => {
  expect(safeLink("https://example.com/a")).toBe("https://example.com/a");
  expect(safeLink("javascript:alert(1)")).toBeNull();
  expect(safeLink("file:///etc/passwd")).toBeNull();
  expect(safeLink("data:text/html,<script>")).toBeNull();
  expect(safeLink("not a link")).toBeNull();
});

test("a title is short and plain", () => {
  expect(plainTitle("vim\u0007\u202e x")).toBe("vim x");
  expect(plainTitle("x".repeat(100))).toHaveLength(25);
});

test("the terminal that was open is shown again", () => {
  const row = (id: string) => ({ id, command: [], rows: 1, columns: 1, began: 0, viewers: 0, ended: false });
  expect(chooseTerminal([row("a"), row("b")], "a")).toBe("a");
  expect(chooseTerminal([row("a"), row("b")], "gone")).toBe("b");
  expect(chooseTerminal([], "a")).toBeNull();
});

test("a connection that broke comes back; a program that ended does not", () => {
  expect([1006, 1012, 4410, 4404, 4401].map(comesBack)).toEqual([true, true, false, false, false]);
});

test("a phone has the keys that it lacks", () => {
  expect([withControl("c"), withControl("C"), withControl("["), withControl("é"), withControl("ab")]).toEqual(["\x03", "\x03", "\x1b", "é", "ab"]);
  expect([bytesOf("Esc", false), bytesOf("Tab", false), bytesOf("↑", false), bytesOf("←", true)]).toEqual(["\x1b", "\t", "\x1b[A", "\x1bOD"]);
});

test("keys are the program's unless they are ours", () => {
  const press = (key: string, more: object = {}) => ({ type: "keydown", key, ctrlKey: true, metaKey: false, shiftKey: false, altKey: false, ...more });
  expect(readTerminalKey(press("f"), false)).toBe("find");
  expect(readTerminalKey(press("f"), true)).toBeNull();
  expect(readTerminalKey(press("F", { shiftKey: true }), true)).toBe("find");
  expect(readTerminalKey(press("c"), false)).toBeNull();
  expect(readTerminalKey(press("C", { shiftKey: true }), false)).toBe("copy");
  expect(readTerminalKey(press("V", { shiftKey: true }), false)).toBe("paste");
  expect(readTerminalKey(press("v"), false)).toBeNull();
  expect(readTerminalKey(press("f", { type: "keyup" }), false)).toBeNull();
});

test("a name that was given stays with its terminal, and goes with it", () => {
  const held = new Map<string, string>();
  const store = { getItem: (key: string) => held.get(key) ?? null, setItem: (key: string, value: string) => void held.set(key, value) };
  nameTerminal("a", " build ", ["a", "b"], store);
  expect(nameTerminal("b", "logs", ["a", "b"], store)).toEqual({ a: "build", b: "logs" });
  expect(nameTerminal("b", "", ["b"], store)).toEqual({});
  held.set("freehold.terminal.names", "nonsense");
  expect(readNames(store)).toEqual({});
});
