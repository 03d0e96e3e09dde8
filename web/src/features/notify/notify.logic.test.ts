import { expect, test } from "vitest";
import type { SessionView } from "../../client/api";
import { pageTitle, wordsOf } from "./notify.logic";

const session = (title: string): SessionView => ({ id: "s", title, agent: "a", model: null, status: "idle", created: "", updated: "", archived: false, cost: null, seq: 1, parent: null, unread: true });

test("the title is ours and the name has an end and hides nothing", () => {
  const { title, body } = wordsOf({ session: session(`a\u202eb\n${"x".repeat(400)}`), what: "needs_you" });
  expect(title).toBe("An agent needs you");
  expect(body).toHaveLength(120);
  expect(body).not.toContain("\u202e");
  expect(body).not.toContain("\n");
});

test("the page's title counts what waits", () => {
  expect(pageTitle(2, "Files")).toBe("(2) Files · Freehold");
  expect(pageTitle(0, undefined)).toBe("Freehold");
});
