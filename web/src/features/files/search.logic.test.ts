import { expect, test } from "vitest";
import { highlightMatch, hitsByFile } from "./search.logic";

test("hits are grouped by file", () => {
  const hit = (path: string, line: number) => ({ path, line, column: 1, text: "x" });
  expect(hitsByFile([hit("a", 1), hit("b", 1), hit("a", 2)]).map((group) => [group.path, group.hits.length])).toEqual([
    ["a", 2],
    ["b", 1],
  ]);
});

test("the match is highlightMatch, and a long line is cut around it", () => {
  expect(highlightMatch({ text: "    let Needle = 1", column: 9 }, "needle", false)).toEqual([
    { text: "let ", hit: false },
    { text: "Needle", hit: true },
    { text: " = 1", hit: false },
  ]);
  const long = highlightMatch({ text: `${"a".repeat(100)}needle${"b".repeat(300)}`, column: 101 }, "needle", false);
  expect(long.map((piece) => piece.text.length)).toEqual([31, 6, 161]);
  const far = highlightMatch({ text: `…${"a".repeat(100)}needle`, column: 9_000 }, "n.+e", true);
  expect(far.map((piece) => piece.text)).toEqual([`…${"a".repeat(30)}`, "needle"]);
  expect(highlightMatch({ text: "abc", column: 2 }, "b+", true)).toEqual([
    { text: "a", hit: false },
    { text: "bc", hit: false },
  ]);
});
