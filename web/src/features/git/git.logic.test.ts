import { expect, test } from "vitest";
import type { GitFile, GitState } from "../../client/api";
import {
  changeWord,
  distanceText,
  filesOn,
  messageIn,
  pathsOf,
  splitDiff,
  splitFiles,
  targetOf,
  worktreePlace,
} from "./git.logic";

const file = (path: string, staged: string, unstaged: string, has_conflict = false): GitFile => ({
  path,
  staged,
  unstaged,
  has_conflict,
  old_path: null,
});

test("a file with staged and other changes is on both sides", () => {
  const files = [file("a", "M", ""), file("b", "M", "M"), file("c", "", "?")];
  expect(filesOn("index", files).map((one) => one.path)).toEqual(["a", "b"]);
  expect(filesOn("worktree", files).map((one) => one.path)).toEqual(["b", "c"]);
  expect(changeWord(file("c", "", "?"), "worktree")).toBe("new");
  expect(changeWord(file("c", "", "U", true), "worktree")).toBe("conflict");
});

test("a file that was renamed is taken out of the index with both of its names", () => {
  const renamed = { ...file("new", "R", "M"), old_path: "old" };
  expect(pathsOf("index", [renamed, file("a", "M", "")])).toEqual(["old", "new", "a"]);
  expect(pathsOf("worktree", [renamed]), "the index has no old name any more").toEqual(["new"]);
  expect(pathsOf("index", [{ ...renamed, staged: "C" }]), "a copy leaves the other file").toEqual(["new"]);
});

const HEAD = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n";

test("each hunk with the head is a patch of its own, and together they are the diff", () => {
  const first = "@@ -1,2 +1,2 @@\n-old\n+new\n same\n";
  const second = "@@ -9 +9 @@\n-@@ odd\n+@@ line\n\\ No newline at end of file\n";
  const { head, hunks } = splitDiff(HEAD + first + second);
  expect(head).toBe(HEAD);
  expect(hunks).toEqual([first, second]);
  expect(splitDiff("Binary files a and b differ\n").hunks).toEqual([]);
});

test("a commit is split by file", () => {
  const gone = "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
  const binary = "diff --git a/p.png b/p.png\nBinary files a/p.png and b/p.png differ\n";
  expect(splitFiles(`${HEAD}@@ -1 +1 @@\n-a\n+b\n${gone}${binary}`).map((one) => one.path)).toEqual([
    "x",
    "gone",
    "p.png",
  ]);
});

const state = (part: Partial<GitState>): GitState => ({
  folder: ".",
  commit: null,
  branch: "main",
  upstream: null,
  ahead: 0,
  behind: 0,
  files: [],
  is_cut: false,
  branches: [],
  worktrees: [],
  remotes: [],
  unfinished: null,
  message_model: null,
  ...part,
});

test("push and pull go to the upstream, else to the first remote", () => {
  const remote = (name: string) => ({ name, url: `https://x/${name}`, secret: null, has_credentials: false });
  expect(targetOf(state({}))).toBeNull();
  expect(targetOf(state({ branch: null, remotes: [remote("origin")] }))).toBeNull();
  expect(targetOf(state({ remotes: [remote("fork"), remote("origin")] }))?.remote.name).toBe("origin");
  const found = targetOf(state({ upstream: "fork/feature/x", remotes: [remote("origin"), remote("fork")] }));
  expect([found?.remote.name, found?.branch]).toEqual(["fork", "feature/x"]);
});

test("a worktree is beside its repository, or hidden in the workspace", () => {
  expect(worktreePlace("site", "feature/x y")).toBe("site-feature-x-y");
  expect(worktreePlace(".", "fix")).toBe(".worktrees/fix");
});

test("the distance to the upstream is said in words", () => {
  expect(distanceText(state({}))).toBeNull();
  expect(distanceText(state({ upstream: "o/m" }))).toBe("up to date with o/m");
  expect(distanceText(state({ upstream: "o/m", ahead: 2, behind: 1 }))).toBe("2 to push, 1 to pull (o/m)");
});

test("the message is what the agent said last in its turn", () => {
  const event = (turn: number, kind: string, data: Record<string, unknown> = {}) => ({
    seq: 1,
    at: "",
    turn,
    kind,
    data,
  });
  const said = [event(3, "message", { text: "old" }), event(4, "message", { text: "Looking" })];
  expect(messageIn(said, 4)).toBeNull();
  const ended = [...said, event(4, "message", { text: "```text\nAdd a page\n\nWhy.\n```" }), event(4, "turn.ended")];
  expect(messageIn(ended, 4)).toBe("Add a page\n\nWhy.");
});
