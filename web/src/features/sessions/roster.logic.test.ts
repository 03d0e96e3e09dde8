import { expect, test } from "vitest";
import type { SessionView } from "../../client/api";
import { newsBetween, standing, withSession } from "./roster.logic";

const row = (id: string, more: Partial<SessionView> = {}): SessionView => ({ id, title: id, agent: "a", model: null, status: "idle", created: "", updated: "1", archived: false, cost: null, seq: 1, parent: null, unread: false, ...more });

test("the last changed comes first; what is archived or deleted goes", () => {
  const rows = withSession([row("a", { updated: "3" }), row("b", { updated: "2" })], row("b", { updated: "4" }));
  expect(rows.map((one) => one.id)).toEqual(["b", "a"]);
  expect(withSession(rows, row("b", { archived: true })).map((one) => one.id)).toEqual(["a"]);
  expect(withSession(rows, { id: "a", deleted: true }).map((one) => one.id)).toEqual(["b"]);
});

test("what comes late does not undo what is known", () => {
  const rows = [row("a", { seq: 5, status: "idle" })];
  expect(withSession(rows, row("a", { seq: 4, status: "working" }))).toBe(rows);
});

test("only what ends or asks is news", () => {
  const before = [row("a", { status: "working" }), row("b", { status: "working" }), row("c", { status: "working" }), row("d"), row("e", { status: "needs_you" })];
  const after = [row("a"), row("b", { status: "needs_you" }), row("c", { status: "failed" }), row("d", { status: "working" }), row("e", { status: "needs_you" }), row("new")];
  expect(newsBetween(before, after).map(({ session, what }) => `${session.id} ${what}`)).toEqual(["a done", "b needs_you", "c failed"]);
});

test("what was read is not called done", () => {
  expect(standing(row("a"))).toBeNull();
  expect(standing(row("a", { unread: true }))?.words).toBe("done");
  expect(standing(row("a", { status: "needs_you", unread: true }))?.words).toBe("needs you");
});
