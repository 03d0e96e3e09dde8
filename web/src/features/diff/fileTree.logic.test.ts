import { expect, test } from "vitest";
import { fileRows, inTreeOrder } from "./fileTree.logic";

const files = ["workspace/a.txt", "workspace/src/deep/one.ts", "workspace/src/deep/two.ts", "workspace/src/x.ts"].map(
  (path) => ({ path }),
);
const shown = (closed: string[]) =>
  fileRows(files, new Set(closed)).map(
    (row) => `${"  ".repeat(row.depth)}${row.name}${row.kind === "folder" ? "/" : ""}`,
  );

test("files are in their folders, folders first", () => {
  expect(shown([])).toEqual([
    "workspace/",
    "  src/",
    "    deep/",
    "      one.ts",
    "      two.ts",
    "    x.ts",
    "  a.txt",
  ]);
  expect(
    inTreeOrder(files)
      .map((file) => file.path)
      .at(-1),
  ).toBe("workspace/a.txt");
});

test("a closed folder says how many files it has and shows none", () => {
  expect(shown(["workspace/src"])).toEqual(["workspace/", "  src/", "  a.txt"]);
  expect(fileRows(files, new Set(["workspace/src"]))[1]).toMatchObject({ files: 3, isOpen: false });
});

test("folders with nothing but one folder share a row", () => {
  const rows = fileRows([{ path: "workspace/a/b/c.txt" }, { path: "workspace/a/b/d.txt" }], new Set());
  expect(rows.map((row) => row.name)).toEqual(["workspace/a/b", "c.txt", "d.txt"]);
});
