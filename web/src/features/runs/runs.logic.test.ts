import { describe, expect, it } from "vitest";
import type { Run } from "../../client/api";
import {
  actionsOf,
  beganText,
  changesText,
  concernsRuns,
  copyText,
  costText,
  limitsText,
  PERMISSIONS,
  stateText,
  toneOf,
  treeOf,
} from "./runs.logic";

function run(changes: Partial<Run>): Run {
  return {
    id: "r1",
    session: "s1",
    agent: "builtin",
    title: "A run",
    state: "done",
    parent: null,
    depth: 1,
    folder: null,
    budget: null,
    cost: null,
    created: "2026-01-01T00:00:00Z",
    finished: null,
    error: null,
    added: 0,
    changed: 0,
    removed: 0,
    outcome: "pending",
    computer: "here",
    permissions: PERMISSIONS.map(({ name }) => name),
    began_by: "owner",
    lost: false,
    entry: null,
    ...changes,
  };
}

describe("runs", () => {
  it("puts runs below the run whose session began them", () => {
    const runs = [run({ id: "b", session: "s2", parent: "s1" }), run({ id: "a", session: "s1", parent: "elsewhere" })];
    const tree = treeOf(runs);
    expect(tree.map((node) => node.run.id)).toEqual(["a"]);
    expect(tree[0]?.below.map((node) => node.run.id)).toEqual(["b"]);
  });

  it("says what a run may not do, and who began it", () => {
    expect([limitsText(run({})), beganText(run({}))]).toEqual(["", ""]);
    expect(limitsText(run({ permissions: ["ask", "memory", "beads", "events", "history", "runs"] }))).toBe(
      "May not: use the network by your rules, use personal documents granted to its agent",
    );
    expect(beganText(run({ began_by: "token:script" }))).toBe("begun by the program script");
    expect(beganText(run({ began_by: "session:a1" }))).toBe("begun by an agent");
  });

  it("says of what a run has a copy", () => {
    expect([".", "./", "site", "a/b/"].map((folder) => copyText(folder, null))).toEqual([
      "copy of the workspace",
      "copy of the workspace",
      "copy of site",
      "copy of a/b",
    ]);
    expect([".", "site"].map((folder) => copyText(folder, 12))).toEqual([
      "copy of the workspace, entry 12",
      "copy of site, entry 12",
    ]);
  });

  it("offers what can be done", () => {
    expect(actionsOf(run({ state: "working" }))).toEqual(["stop"]);
    expect(actionsOf(run({ added: 1 }))).toEqual(["changes", "drop"]);
    expect(actionsOf(run({ added: 1, outcome: "merged" }))).toEqual([]);
    expect(actionsOf(run({ outcome: "none" }))).toEqual([]);
  });

  it("says what a run has cost, of how much", () => {
    const dollars = (value: number) => `$${value}`;
    expect(costText(run({}), dollars)).toBe("");
    expect(costText(run({ budget: 2 }), dollars)).toBe("budget $2");
    expect(costText(run({ cost: 1 }), dollars)).toBe("cost $1");
    expect(costText(run({ cost: 1, budget: 2 }), dollars)).toBe("cost $1 of $2");
  });

  it("marks what needs the owner, and what failed", () => {
    expect((["needs_you", "failed", "ended", "done"] as const).map((state) => toneOf(run({ state })))).toEqual([
      "amber",
      "alarm",
      undefined,
      "leaf",
    ]);
  });

  it("says what a run has changed", () => {
    expect(changesText(run({ state: "working", added: 1 }))).toBe("");
    expect(changesText(run({ added: 1 }))).toBe("1 file changed");
    expect(changesText(run({ added: 1, removed: 1, outcome: "merged" }))).toBe("2 files changed, merged");
    expect(stateText(run({ state: "needs_you" }))).toBe("needs your answer");
  });

  it("listens to its own events", () => {
    expect(concernsRuns({ kind: "orchestrator.finished" })).toBe(true);
    expect(concernsRuns({ kind: "beads.created" })).toBe(false);
    expect(concernsRuns(null)).toBe(false);
  });
});
