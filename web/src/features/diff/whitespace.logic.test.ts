import { expect, test } from "vitest";
import { diffLines } from "../history/history.logic";
import { ignoreWhitespace } from "./whitespace.logic";

const shown = (text: string) =>
  ignoreWhitespace(diffLines(text).lines).map(
    (line) => `${line.kind} ${line.old ?? "-"} ${line.new ?? "-"} ${line.text}`,
  );

test("a line that is indented otherwise is the same, with the numbers of both sides", () => {
  expect(shown("@@ -1,3 +1,4 @@\n a\n-if x:\n-  go(1,  2)\n+while x:\n+    go(1, 2)\n+    stop()\n z\n")).toEqual([
    "hunk - - @@ -1,3 +1,4 @@",
    "same 1 1 a",
    "removed 2 - if x:",
    "added - 2 while x:",
    "same 3 3     go(1, 2)",
    "added - 4     stop()",
    "same 4 5 z",
  ]);
});

test("a change of words stays a change", () => {
  const text = "@@ -1 +1 @@\n-ab\n+a b\n";
  expect(shown(text)).toEqual(["hunk - - @@ -1 +1 @@", "removed 1 - ab", "added - 1 a b"]);
});

test("ten thousand lines that were indented are compared at once", () => {
  const lines = Array.from({ length: 10_000 }, (_, at) => `line ${at}`);
  const text = `@@ -1,10000 +1,10000 @@\n${lines.map((one) => `-${one}\n`).join("")}${lines.map((one) => `+  ${one}\n`).join("")}`;
  const found = ignoreWhitespace(diffLines(text, 30_000).lines);
  expect(found.filter((line) => line.kind === "same")).toHaveLength(10_000);
});
