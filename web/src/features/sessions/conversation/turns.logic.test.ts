import { expect, test } from "vitest";
import type { HistoryEntry } from "../../../client/api";
import { actionOf, fateOf, hasChanged } from "./turns.logic";

const entry = (id: number, kind = "turn", who: Record<string, string> = {}, equals = id): HistoryEntry => ({
  id, kind, who, equals, at: 0, why: "", added: 1, changed: 0, removed: 0, lines_added: null, lines_removed: null, good: false, notes: [],
});
const changes = { added: 1, changed: 0, removed: 0, entry: 5, before: 3 };
const mine = { session: "s", turn: "2" };

test("a turn is done, taken back, and done again", () => {
  expect(fateOf([entry(5), entry(3)], "s", 2, changes)).toEqual({ kind: "done" });
  expect(fateOf([entry(7, "revert", mine), entry(5), entry(3)], "s", 2, changes)).toEqual({ kind: "reverted", by: 7 });
  expect(fateOf([entry(9, "revert", mine), entry(7, "revert", mine), entry(5)], "s", 2, changes)).toEqual({ kind: "done" });
  expect(fateOf([entry(7, "revert", { session: "s", turn: "1" }), entry(5)], "s", 2, changes)).toEqual({ kind: "done" });
});

test("a revert that was itself undone took nothing back", () => {
  expect(fateOf([entry(8, "undo", {}, 5), entry(7, "revert", mine), entry(5), entry(3)], "s", 2, changes)).toEqual({ kind: "done" });
});

test("a turn that an undo went back behind can be redone while that is the last thing done", () => {
  expect(fateOf([entry(6, "undo", {}, 3), entry(5), entry(3)], "s", 2, changes)).toEqual({ kind: "undone", redo: true });
  expect(fateOf([entry(7), entry(6, "undo", {}, 3), entry(5), entry(3)], "s", 2, changes)).toEqual({ kind: "undone", redo: false });
});

test("undo takes back the whole turn, redo exactly that", () => {
  expect(actionOf({ kind: "done" }, "s", 2, changes)).toMatchObject({ action: "revert", entry: 5, since: 3, of: { session: "s", turn: 2 } });
  expect(actionOf({ kind: "reverted", by: 7 }, "s", 2, changes)).toMatchObject({ action: "revert", entry: 7 });
});

test("a turn that changed nothing has nothing to take back", () => {
  expect(hasChanged({ ...changes, added: 0 })).toBe(false);
  expect(hasChanged(null)).toBe(false);
  expect(hasChanged(changes)).toBe(true);
});
