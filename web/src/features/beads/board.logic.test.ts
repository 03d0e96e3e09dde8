import { expect, test } from "vitest";
import type { Bead } from "../../client/api";
import {
  actionForMove,
  actionsOf,
  changeText,
  columnBeside,
  columnItems,
  concernsBoard,
  holderText,
  isSessionHere,
  needsEvidence,
  readLabels,
  relationsOf,
  workText,
} from "./board.logic";

function bead(id: string, fields: Partial<Bead> = {}): Bead {
  return {
    id,
    title: id,
    description: "",
    kind: "task",
    priority: 2,
    status: "open",
    holder: null,
    parent: null,
    labels: [],
    needs: [],
    related: [],
    sessions: [],
    blocked: false,
    created: "2026-01-01T00:00:00Z",
    created_by: "owner",
    updated: "2026-01-01T00:00:00Z",
    closed: null,
    close_reason: null,
    evidence: null,
    version: 1,
    ...fields,
  };
}

test("what can be begun is before what is blocked, and the important before the rest", () => {
  const items = [
    bead("a", { blocked: true, priority: 0 }),
    bead("b"),
    bead("c", { priority: 1 }),
    bead("d", { status: "closed" }),
  ];
  expect(columnItems(items, "open").map((one) => one.id)).toEqual(["c", "b", "a"]);
});

test("in the closed column the last closed is first", () => {
  const items = [1, 3, 2].map((n) => bead(`${n}`, { status: "closed", closed: `2026-01-01T00:00:0${n}Z` }));
  expect(columnItems(items, "closed").map((one) => one.id)).toEqual(["3", "2", "1"]);
});

test("columns have neighbours", () => {
  expect(columnBeside("open", 1)).toBe("in_progress");
  expect(columnBeside("open", -1)).toBeUndefined();
  expect(columnBeside("closed", 1)).toBeUndefined();
});

test("labels are separated by commas, each once", () => {
  expect(readLabels(" house, urgent,,house ")).toEqual(["house", "urgent"]);
  expect(readLabels(" ")).toEqual([]);
});

test("a blocked item cannot be begun", () => {
  expect(actionsOf(bead("a", { blocked: true }))).toEqual(["close"]);
  expect(actionForMove(bead("a", { blocked: true }), "in_progress")).toBeNull();
});

test.each([
  ["open", "in_progress", "claim"],
  ["open", "closed", "close"],
  ["open", "open", null],
  ["in_progress", "open", "release"],
  ["in_progress", "closed", "close"],
  ["closed", "open", "reopen"],
  ["closed", "in_progress", null],
] as const)("moving an item from %s to %s means %s", (from, to, action) => {
  expect(actionForMove(bead("a", { status: from }), to)).toBe(action);
});

test("closing what an agent has worked on needs evidence", () => {
  expect(needsEvidence(bead("a"))).toBe(false);
  expect(needsEvidence(bead("a", { sessions: ["s"] }))).toBe(true);
});

test("who acts from another Freehold is told by the token, and has no page here", () => {
  const names = ["neighbour:owner", "neighbour:token:a/session:1", "token:laptop/owner", "token:laptop/session:1"];
  expect(names.map(holderText)).toEqual([
    "another Freehold",
    "another Freehold",
    "token laptop",
    "an agent by token laptop",
  ]);
  expect(["a1", "token:laptop/a1", "neighbour:a1"].map(isSessionHere)).toEqual([true, false, false]);
});

test("holders are told in words", () => {
  expect(["owner", "session:1", "token:ci", "alice"].map(holderText)).toEqual(["you", "an agent", "token ci", "alice"]);
});

test("only events of items and slots concern the board", () => {
  expect([{ kind: "beads.created" }, { kind: "slot.lost" }, { kind: "egress.x" }, {}, null].map(concernsBoard)).toEqual(
    [true, true, false, false, false],
  );
});

test("the relations of an item are told by titles, and empty ones are left out", () => {
  const titleOf = (id: string) => `Item ${id}`;
  const one = bead("a", { holder: "owner", parent: "p", needs: ["b", "c"], evidence: "it works" });
  const details = { bead: one, children: ["d"], blocks: [], comments: [], history: [] };
  expect(relationsOf(one, details, titleOf)).toEqual([
    ["Id", "a"],
    ["Priority", "2"],
    ["Held by", "you"],
    ["Part of", "Item p"],
    ["Parts", "Item d"],
    ["Waits for", "Item b\nItem c"],
    ["Evidence", "it works"],
  ]);
});

test("what a session changed and what happened to an item are told in words", () => {
  const work = { entry: 3, at: "", session: "s", added: 1, changed: 2, removed: 0 };
  expect(workText(work)).toBe("1 file added, 2 files changed");
  expect(workText({ ...work, added: 0, changed: 0 })).toBe("No files changed");
  expect(changeText({ version: 1, at: "", who: "owner", action: "need_added", fields: {} })).toBe("You: need added");
  expect(changeText({ version: 1, at: "", who: "owner", action: "updated", fields: { title: "a", priority: 1 } })).toBe(
    "You: updated title, priority",
  );
});
