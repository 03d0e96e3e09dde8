// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { SessionInfo } from "../client/api";
import { foundText } from "./foundText.logic";

test("what was found opens where the words are", () => {
  const session = { id: "s1", title: "Colours", agent: "builtin" } as SessionInfo;
  const found = foundText("dark blue", [session], [{ path: "src/a.css", line: 7, text: "  dark blue  " }]);
  expect(found.map((row) => [row.title, row.group])).toEqual([
    ["Colours", "In the conversation"],
    ["dark blue", "src/a.css:7"],
  ]);
  found[0]?.run();
  expect(location.pathname + location.search).toBe("/sessions?id=s1&find=dark%20blue");
  found[1]?.run();
  expect(location.search).toBe("?path=src%2Fa.css&line=7");
});
