import { expect, test } from "vitest";
import { folderOf, inWorkspace, isSkipped, Latest, Tree } from "./tree.logic";

const rows: [string, string, number][] = [
  ["src", "folder", 0],
  ["src/a10.ts", "file", 1],
  ["src/a2.ts", "file", 1],
  ["readme.md", "file", 9],
  ["lib", "folder", 0],
];

test("folders come first and numbers count", () => {
  const tree = new Tree(rows);
  expect(tree.shown(new Set()).map((row) => row.name)).toEqual(["lib", "src", "readme.md"]);
  expect(tree.shown(new Set(["src"])).map((row) => [row.name, row.depth])).toEqual([
    ["lib", 0],
    ["src", 0],
    ["a2.ts", 1],
    ["a10.ts", 1],
    ["readme.md", 0],
  ]);
});

test("what changes is seen at once, and a folder goes with all that is in it", () => {
  const tree = new Tree(rows);
  tree.put("src/deep/new.ts", "file", 3);
  expect(tree.get("src/deep")?.kind).toBe("folder");
  tree.remove("src");
  expect(tree.shown(new Set(["src"])).map((row) => row.name)).toEqual(["lib", "readme.md"]);
  expect(tree.get("src/deep/new.ts")).toBeUndefined();
});

test("fifty thousand files are ready to draw in a moment", () => {
  const many = Array.from({ length: 50_000 }, (_, i): [string, string, number] => [`d${i % 500}/f${i}.txt`, "file", 1]);
  const tree = new Tree(many);
  expect(tree.size).toBe(50_500);
  expect(tree.shown(new Set(["d7"]))).toHaveLength(600);
  expect(tree.named("f4999.txt")[0]?.path).toBe("d499/f4999.txt");
});

test("an answer that was asked for before the last news is known to be old", () => {
  const latest = new Latest();
  latest.note("a");
  const asked = latest.of("a");
  expect(latest.of("a")).toBe(asked);
  latest.note("a");
  expect(latest.of("a")).not.toBe(asked);
});

test("paths of changes are those of the workspace", () => {
  expect(inWorkspace("workspace/a/b")).toBe("a/b");
  expect(inWorkspace("home/.bashrc")).toBeNull();
  expect(folderOf("a/b/c")).toBe("a/b");
  expect(isSkipped("web/node_modules/x.js")).toBe(true);
});
