import { expect, test } from "vitest";
import { draftOf } from "./draft.logic";

const wordsOf = (block: string) => draftOf(block).lines.map((pieces) => pieces.map((one) => one.text).join(""));

test("a paragraph loses the marks of links, code and emphasis, and keeps its words", () => {
  const block = "Run **all** `make test` in [the guide](https://example.com/a_b)\nand see ![a cat](cat.png)";
  expect(draftOf(block).kind).toBe("paragraph");
  expect(wordsOf(block)).toEqual(["Run all make test in the guide", "and see [image: a cat]"]);
});

test("bold words, code and links look as they do when they are formatted", () => {
  expect(draftOf("[a `b`](c)[d] ![e](f)").lines).toEqual([
    [
      { kind: "link", text: "a b" },
      { kind: "text", text: "[d] " },
      { kind: "link", text: "[image: e]" },
    ],
  ]);
  expect(draftOf("Run **all of** `make **test**` ~~now~~ `").lines).toEqual([
    [
      { kind: "text", text: "Run " },
      { kind: "strong", text: "all of" },
      { kind: "text", text: " " },
      { kind: "code", text: "make **test**" },
      { kind: "text", text: " " },
      { kind: "text", text: "now" },
      { kind: "text", text: " " },
    ],
  ]);
});

test("names with underlines and brackets that are no link stay as they are", () => {
  expect(wordsOf("call `__init__` of a[0] (now)")).toEqual(["call __init__ of a[0] (now)"]);
});

test("a heading keeps its level", () => {
  const { kind, level } = draftOf("## What **changed**");
  expect([kind, level, wordsOf("## What **changed**")]).toEqual(["heading", 2, ["What changed"]]);
});

test("items, quotes and rows of a table are lines of their own", () => {
  expect(wordsOf("- one\n- [x] two\n\n  1. three")).toEqual(["• one", "☑ two", "  1. three"]);
  expect(wordsOf("> said\n> so")).toEqual(["said", "so"]);
  expect(wordsOf("| a | b |\n|---|---|\n| 1 | 2 |")).toEqual([" a | b ", " 1 | 2 "]);
});

test("a rule has no words", () => {
  expect(draftOf("---").lines).toEqual([]);
});
