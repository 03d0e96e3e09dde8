import { expect, test } from "vitest";
import type { SessionInfo } from "../../client/api";
import { messageOf, tabTitle } from "./notifications.logic";

const session = (title: string): SessionInfo => ({
  id: "s",
  title,
  agent: "a",
  model: null,
  status: "idle",
  created: "",
  updated: "",
  archived: false,
  cost: null,
  seq: 1,
  parent: null,
  unread: true,
  mode: null,
  asks: true,
  folder: "",
  waiting: null,
});

test("the title is ours, and the name is shortened and hides nothing", () => {
  const { title, body } = messageOf({ session: session(`a\u202eb\n${"x".repeat(400)}`), what: "needs_you" });
  expect(title).toBe("An agent needs you");
  expect(body).toHaveLength(120);
  expect(body).not.toContain("\u202e");
  expect(body).not.toContain("\n");
});

test("the tab title counts the open requests", () => {
  expect(tabTitle(2, "Files")).toBe("(2) Files · Freehold");
  expect(tabTitle(0, undefined)).toBe("Freehold");
});
