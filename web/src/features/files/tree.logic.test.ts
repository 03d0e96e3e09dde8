import { expect, test } from "vitest";
import { ChangeCounter, FolderCursors, folderOf, isIgnored, listedRows, Tree, workspacePath } from "./tree.logic";

const rows: [string, string, number][] = [
  ["src", "folder", 0],
  ["src/a10.ts", "file", 1],
  ["src/a2.ts", "file", 1],
  ["readme.md", "file", 9],
  ["lib", "folder", 0],
];

test("folders come first, and numbers are in order", () => {
  const tree = new Tree(rows);
  expect(tree.visibleRows(new Set()).map((row) => row.name)).toEqual(["lib", "src", "readme.md"]);
  expect(tree.visibleRows(new Set(["src"])).map((row) => [row.name, row.depth])).toEqual([
    ["lib", 0],
    ["src", 0],
    ["a2.ts", 1],
    ["a10.ts", 1],
    ["readme.md", 0],
  ]);
});

test("a removed folder takes its content with it", () => {
  const tree = new Tree(rows);
  tree.put("src/deep/new.ts", "file", 3);
  expect(tree.get("src/deep")?.kind).toBe("folder");
  tree.remove("src");
  expect(tree.visibleRows(new Set(["src"])).map((row) => row.name)).toEqual(["lib", "readme.md"]);
  expect(tree.get("src/deep/new.ts")).toBeUndefined();
});

test("fifty thousand files are listed quickly", () => {
  const many = Array.from({ length: 50_000 }, (_, i): [string, string, number] => [`d${i % 500}/f${i}.txt`, "file", 1]);
  const tree = new Tree(many);
  expect(tree.size).toBe(50_500);
  expect(tree.visibleRows(new Set(["d7"]))).toHaveLength(600);
  expect(tree.search("f4999.txt")[0]?.path).toBe("d499/f4999.txt");
});

test("a reply that is older than a change is recognized", () => {
  const latest = new ChangeCounter();
  latest.add("a");
  const asked = latest.countOf("a");
  expect(latest.countOf("a")).toBe(asked);
  latest.add("a");
  expect(latest.countOf("a")).not.toBe(asked);
});

test("paths are relative to the workspace", () => {
  expect(workspacePath("workspace/a/b")).toBe("a/b");
  expect(workspacePath("home/.bashrc")).toBeNull();
  expect(folderOf("a/b/c")).toBe("a/b");
  expect(isIgnored("web/node_modules/x.js")).toBe(true);
});

test("a folder is listed page by page, one at a time, until it is complete", () => {
  const cursors = new FolderCursors();
  expect(cursors.take("a")).toBe("");
  expect(cursors.take("a")).toBeNull();
  cursors.put("a", "last name");
  expect(cursors.take("b")).toBe("");
  expect(cursors.take("a")).toBe("last name");
  cursors.put("a", null);
  expect(cursors.take("a")).toBeNull();
});

test("listed entries are rows of their folder, without ignored ones", () => {
  const entries = [
    { name: ".git", kind: "folder", size: 0 },
    { name: "b.txt", kind: "file", size: 3 },
  ];
  expect(listedRows("a", entries, false)).toEqual([["a/b.txt", "file", 3]]);
  expect(listedRows("", entries, true).map(([path]) => path)).toEqual([".git", "b.txt"]);
});
