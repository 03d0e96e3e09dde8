import { expect, test } from "vitest";
import { draftOf } from "./draft.logic";

test("a paragraph loses the marks of links, code and emphasis, and keeps its words", () => {
  const draft = draftOf("Run **all** `make test` in [the guide](https://example.com/a_b)\nand see ![a cat](cat.png)");
  expect(draft).toEqual({
    kind: "paragraph",
    level: 0,
    lines: ["Run all make test in the guide", "and see [image: a cat]"],
  });
});

test("names with underlines and brackets that are no link stay as they are", () => {
  expect(draftOf("call `__init__` of a[0] (now)").lines).toEqual(["call __init__ of a[0] (now)"]);
});

test("a heading keeps its level", () => {
  expect(draftOf("## What **changed**")).toEqual({ kind: "heading", level: 2, lines: ["What changed"] });
});

test("items, quotes and rows of a table are lines of their own", () => {
  expect(draftOf("- one\n- [x] two\n\n  1. three").lines).toEqual(["• one", "☑ two", "  1. three"]);
  expect(draftOf("> said\n> so").lines).toEqual(["said", "so"]);
  expect(draftOf("| a | b |\n|---|---|\n| 1 | 2 |").lines).toEqual([" a | b ", " 1 | 2 "]);
});

test("a rule has no words", () => {
  expect(draftOf("---").lines).toEqual([]);
});
