import { expect, test } from "vitest";
import {
  bestCommands,
  bestFiles,
  complete,
  fileCandidate,
  namedFiles,
  tokenAt,
  withoutFile,
} from "./suggestions.logic";

test("a file is completed after @ at the start of a word, a command only at the start of the message", () => {
  expect(tokenAt("see @src/ma", 11)).toEqual({ kind: "file", from: 4, to: 11, query: "src/ma" });
  expect(tokenAt("@", 1)).toEqual({ kind: "file", from: 0, to: 1, query: "" });
  expect(tokenAt("me@example", 10)).toBeNull();
  expect(tokenAt("/com", 4)).toEqual({ kind: "command", from: 0, to: 4, query: "com" });
  expect(tokenAt("a /com", 6)).toBeNull();
  expect(tokenAt("/compact now", 12)).toBeNull();
});

test("a completion replaces the word and puts the caret after it", () => {
  expect(complete("see @ma now", { kind: "file", from: 4, to: 7, query: "ma" }, "src/main.ts")).toEqual({
    text: "see @src/main.ts now",
    caret: 17,
  });
  expect(complete("/co", { kind: "command", from: 0, to: 3, query: "co" }, "compact")).toEqual({
    text: "/compact ",
    caret: 9,
  });
});

const FILES = ["src/main.ts", "src/domain.ts", "docs/main/intro.md", "m/a/i/n.txt", "readme.md"].map((path) =>
  fileCandidate(path, "file"),
);

test("a match at the start of the name comes first, then in the name, in the path, and in order", () => {
  expect(bestFiles(FILES, "main").map((one) => one.path)).toEqual([
    "src/main.ts",
    "src/domain.ts",
    "docs/main/intro.md",
    "m/a/i/n.txt",
  ]);
  expect(bestFiles(FILES, "mint").map((one) => one.path)).toContain("m/a/i/n.txt");
  expect(bestFiles(FILES, "zzz")).toEqual([]);
  expect(bestFiles(FILES, "", 2)).toHaveLength(2);
});

test("of fifty thousand files the best few are found", () => {
  const many = Array.from({ length: 50_000 }, (_, number) =>
    fileCandidate(`folder${number % 100}/file${number}.ts`, "file"),
  );
  expect(bestFiles(many, "file49999")[0]?.path).toBe("folder99/file49999.ts");
});

test("commands that start with the query come first", () => {
  const commands = ["review", "compact", "uncompact"].map((name) => ({ name, description: "" }));
  expect(bestCommands(commands, "comp").map((one) => one.name)).toEqual(["compact", "uncompact"]);
});

test("a file is attached as long as the text names it", () => {
  expect(namedFiles("look at @a.txt", ["a.txt", "b.txt", "a.txt"])).toEqual(["a.txt"]);
  expect(withoutFile("look at @a.txt now", "a.txt")).toBe("look at now");
});
