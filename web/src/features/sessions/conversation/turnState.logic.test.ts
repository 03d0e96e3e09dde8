import { expect, test } from "vitest";
import type { HistoryEntry } from "../../../client/api";
import { hasChanged, turnAction, turnState } from "./turnState.logic";

const entry = (id: number, kind = "turn", who: Record<string, string> = {}, equals = id): HistoryEntry => ({
  id,
  kind,
  who,
  equals,
  at: "2026-11-15T09:00:00Z",
  why: "",
  added: 1,
  changed: 0,
  removed: 0,
  lines_added: null,
  lines_removed: null,
  good: false,
  notes: [],
});
const changes = { added: 1, changed: 0, removed: 0, entry: 5, before: 3 };
const mine = { session: "s", turn: "2" };

test("a turn is done, reverted, and done again", () => {
  expect(turnState([entry(5), entry(3)], "s", 2, changes)).toEqual({ kind: "done" });
  expect(turnState([entry(7, "revert", mine), entry(5), entry(3)], "s", 2, changes)).toEqual({
    kind: "reverted",
    by: 7,
  });
  expect(turnState([entry(9, "revert", mine), entry(7, "revert", mine), entry(5)], "s", 2, changes)).toEqual({
    kind: "done",
  });
  expect(turnState([entry(7, "revert", { session: "s", turn: "1" }), entry(5)], "s", 2, changes)).toEqual({
    kind: "done",
  });
});

test("a revert that was itself undone does not count", () => {
  expect(turnState([entry(8, "undo", {}, 5), entry(7, "revert", mine), entry(5), entry(3)], "s", 2, changes)).toEqual({
    kind: "done",
  });
});

test("a turn that was undone can be redone while the undo is the newest entry", () => {
  expect(turnState([entry(6, "undo", {}, 3), entry(5), entry(3)], "s", 2, changes)).toEqual({
    kind: "undone",
    canRedo: true,
  });
  expect(turnState([entry(7), entry(6, "undo", {}, 3), entry(5), entry(3)], "s", 2, changes)).toEqual({
    kind: "undone",
    canRedo: false,
  });
});

test("undo reverts the whole turn, and redo reverts that revert", () => {
  expect(turnAction({ kind: "done" }, "s", 2, changes)).toMatchObject({
    action: "revert",
    entry: 5,
    since: 3,
    of: { session: "s", turn: 2 },
  });
  expect(turnAction({ kind: "reverted", by: 7 }, "s", 2, changes)).toMatchObject({ action: "revert", entry: 7 });
});

test("a turn without changes has nothing to undo", () => {
  expect(hasChanged({ ...changes, added: 0 })).toBe(false);
  expect(hasChanged(null)).toBe(false);
  expect(hasChanged(changes)).toBe(true);
});
