// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { SessionInfo } from "../client/api";
import { foundText } from "./foundText.logic";

test("what was found opens where the words are", () => {
  const session = { id: "s1", title: "Colours", agent: "builtin" } as SessionInfo;
  const hit = { path: "src/a.css", line: 7, column: 3, text: "  dark blue  " };
  const found = foundText("dark blue", [session], [hit]);
  expect(found.map((row) => [row.title, row.group])).toEqual([
    ["Colours", "In the conversation"],
    ["dark blue", "src/a.css:7"],
  ]);
  found[0]?.run();
  expect(location.pathname + location.search).toBe("/sessions?id=s1&find=dark%20blue");
  found[1]?.run();
  expect(location.search).toBe("?path=src%2Fa.css&line=7");
});

test("a line shows what was found in it, and a name hides nothing", () => {
  const text = `${"x".repeat(300)} dark blue ${"y".repeat(300)}`;
  const [row] = foundText("dark blue", [], [{ path: "a\u202egnp.exe", line: 1, column: 302, text }]);
  expect(row?.title).toContain(" dark blue ");
  expect(row?.title.length).toBeLessThan(220);
  expect(row?.group).not.toContain("\u202e");
});
