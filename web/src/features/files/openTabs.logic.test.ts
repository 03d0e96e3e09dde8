import { expect, test } from "vitest";
import { MAX_TABS, neighbourOf, readTabs, tabNames, withRenamed, withTab } from "./openTabs.logic";

test("a file is opened in a tab once, and the oldest tab goes when there are too many", () => {
  expect(withTab(["a", "b"], "a")).toEqual(["a", "b"]);
  const many = Array.from({ length: MAX_TABS }, (_, index) => `f${index}`);
  expect(withTab(many, "new")).toEqual([...many.slice(1), "new"]);
});

test("after a tab was closed its neighbour is shown", () => {
  expect(neighbourOf(["a", "b", "c"], "b")).toBe("c");
  expect(neighbourOf(["a", "b"], "b")).toBe("a");
  expect(neighbourOf(["a"], "a")).toBeNull();
});

test("a tab follows a renamed file and goes with a deleted one", () => {
  expect(withRenamed(["a", "b"], "a", "c")).toEqual(["c", "b"]);
  expect(withRenamed(["a", "b"], "a", null)).toEqual(["b"]);
});

test("tabs that cannot be read are none", () => {
  expect(readTabs('["a",1]')).toEqual(["a"]);
  for (const odd of ["{", "null", '"a"', null]) expect(readTabs(odd)).toEqual([]);
});

test("files of the same name are told apart", () => {
  expect([...tabNames(["src/a/index.ts", "src/b/index.ts", "x.md"]).values()]).toEqual([
    "a/index.ts",
    "b/index.ts",
    "x.md",
  ]);
});
