import { expect, test } from "vitest";
import { codeOf, splitBlocks } from "./blocks.logic";

test("paragraphs, code and lists are blocks", () => {
  const text = "# Title\n\nOne\ntwo\n\n```py\na = 1\n\n\nb = 2\n```\n\n- x\n\n- y\n\n  more of y\n\nEnd";
  expect(splitBlocks(text)).toEqual([
    "# Title\n",
    "One\ntwo\n",
    "```py\na = 1\n\n\nb = 2\n```\n",
    "- x\n\n- y\n\n  more of y\n",
    "End",
  ]);
});

test("growing text changes only the last block", () => {
  const whole =
    "First words.\n\n1. one\n2. two\n\n```js\nlet a;\n\nlet b;\n```\n\n> said\n\nLast words, with **some** more.";
  let before: string[] = [];
  for (let end = 1; end <= whole.length; end++) {
    const now = splitBlocks(whole.slice(0, end));
    const settled = before.slice(0, -1).map((block) => block.trimEnd());
    expect(now.slice(0, settled.length).map((block) => block.trimEnd())).toEqual(settled);
    before = now;
  }
  expect(before).toHaveLength(5);
});

test("a fence in a list, an open one and one with more ticks keep their content", () => {
  expect(splitBlocks("- do\n\n  ```sh\n  a\n\nb\n  ```\n\nafter")).toEqual([
    "- do\n\n  ```sh\n  a\n\nb\n  ```\n",
    "after",
  ]);
  expect(splitBlocks("```\na\n\nb")).toEqual(["```\na\n\nb"]);
  expect(splitBlocks("````md\n```\n\nx\n```\n````\n\ny")).toEqual(["````md\n```\n\nx\n```\n````\n", "y"]);
});

test("link definitions keep the text in one block", () => {
  const text = "See [it][1].\n\nMore.\n\n[1]: https://example.com";
  expect(splitBlocks(text)).toEqual([text]);
});

test("no text is lost", () => {
  expect(splitBlocks("")).toEqual([]);
  expect(splitBlocks("\n\n  \n")).toEqual([]);
  expect(splitBlocks("a\n\n    code\n\nb").join("\n")).toBe("a\n\n    code\n\nb");
});

test("code between paragraphs is a block of its own, also without empty lines", () => {
  expect(splitBlocks("Look:\n```py\na\n\nb\n```\nDone")).toEqual(["Look:", "```py\na\n\nb\n```", "Done"]);
});

test("a block that is only code is read without a parser", () => {
  expect(codeOf("```py title\na\n\nb\n```\n")).toEqual({ language: "py", text: "a\n\nb" });
  expect(codeOf("~~~\n```\n~~~")).toEqual({ language: "", text: "```" });
  expect(codeOf("```js\nstill open")).toEqual({ language: "js", text: "still open" });
  for (const other of ["text", "```a```", "```\na\n```\nafter", "- ```\n  a\n  ```"]) expect(codeOf(other)).toBeNull();
});
