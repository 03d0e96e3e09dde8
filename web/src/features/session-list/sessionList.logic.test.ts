import { expect, test } from "vitest";
import type { SessionInfo } from "../../client/api";
import { isUnused, sessionNews, statusLabel, withSession } from "./sessionList.logic";

const row = (id: string, more: Partial<SessionInfo> = {}): SessionInfo => ({
  id,
  title: id,
  agent: "a",
  model: null,
  status: "idle",
  created: "",
  updated: "1",
  archived: false,
  cost: null,
  seq: 1,
  parent: null,
  unread: false,
  mode: null,
  asks: true,
  folder: "",
  waiting: null,
  ...more,
});

test("the last changed session comes first, and archived and deleted ones leave the list", () => {
  const rows = withSession([row("a", { updated: "3" }), row("b", { updated: "2" })], row("b", { updated: "4" }));
  expect(rows.map((one) => one.id)).toEqual(["b", "a"]);
  expect(withSession(rows, row("b", { archived: true })).map((one) => one.id)).toEqual(["a"]);
  expect(withSession(rows, { id: "a", deleted: true }).map((one) => one.id)).toEqual(["b"]);
});

test("a late event does not overwrite a newer state", () => {
  const rows = [row("a", { seq: 5, status: "idle" })];
  expect(withSession(rows, row("a", { seq: 4, status: "working" }))).toBe(rows);
});

test("the owner is notified when a session ends or needs them", () => {
  const before = [
    row("a", { status: "working" }),
    row("b", { status: "working" }),
    row("c", { status: "working" }),
    row("d"),
    row("e", { status: "needs_you" }),
  ];
  const after = [
    row("a"),
    row("b", { status: "needs_you" }),
    row("c", { status: "failed" }),
    row("d", { status: "working" }),
    row("e", { status: "needs_you" }),
    row("new"),
  ];
  expect(sessionNews(before, after).map(({ session, what }) => `${session.id} ${what}`)).toEqual([
    "a done",
    "b needs_you",
    "c failed",
  ]);
});

test("a session that was read is not shown as done", () => {
  expect(statusLabel(row("a"))).toBeNull();
  expect(statusLabel(row("a", { unread: true }))?.text).toBe("done");
  expect(statusLabel(row("a", { status: "needs_you", unread: true }))?.text).toBe("needs you");
});

test("a session without words and without a name is unused", () => {
  expect(isUnused(row("a", { seq: 0, title: "New session" }))).toBe(true);
  expect(isUnused(row("a", { seq: 0, title: "My name" }))).toBe(false);
  expect(isUnused(row("a", { seq: 1, title: "New session" }))).toBe(false);
  expect(isUnused(row("a", { seq: 0, title: "New session", status: "queued" }))).toBe(false);
});
