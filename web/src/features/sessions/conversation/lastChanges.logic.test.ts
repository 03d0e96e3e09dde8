import { expect, test } from "vitest";
import type { SessionEvent } from "../../../client/api";
import { lastChangesPath } from "./lastChanges.logic";

const ended = (seq: number, changes: unknown): SessionEvent =>
  ({ seq, at: "", turn: seq, kind: "turn.ended", data: { changes } }) as SessionEvent;
const counts = (before: number, entry: number, changed: number) => ({ before, entry, added: 0, changed, removed: 0 });

test("the last turn that changed files is shown", () => {
  const events = [ended(1, counts(1, 2, 1)), ended(2, counts(2, 5, 3)), ended(3, counts(5, 5, 0)), ended(4, null)];
  expect(lastChangesPath(events)).toBe("/history/diff?old=2&new=5");
});

test("without such a turn the last change is shown", () => {
  expect(lastChangesPath([])).toBe("/history/diff?old=before&new=now");
  expect(lastChangesPath([ended(1, { before: "x", entry: 9, changed: 1 })])).toBe("/history/diff?old=before&new=now");
});
