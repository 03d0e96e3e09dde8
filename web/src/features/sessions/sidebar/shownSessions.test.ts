// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { SessionInfo } from "../../../client/api";
import { writeDraft } from "../composer/draft";
import { shownSessions } from "./shownSessions";

const row = (id: string, more: Partial<SessionInfo> = {}): SessionInfo =>
  ({ id, title: "New session", status: "idle", seq: 0, ...more }) as SessionInfo;

test("a session without a word is not offered, unless it is open or has a draft", () => {
  writeDraft("drafted", { text: "half a sentence", picked: [] });
  const rows = [row("empty"), row("drafted"), row("open"), row("used", { seq: 1 }), row("named", { title: "Mine" })];
  expect(shownSessions(rows, "open").map((one) => one.id)).toEqual(["drafted", "open", "used", "named"]);
  expect(shownSessions(rows).map((one) => one.id)).toEqual(["drafted", "used", "named"]);
});
