import { expect, test } from "vitest";
import { chooseTerminal, comesBack, plainTitle, safeLink } from "./terminal.logic";

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
