import { expect, test } from "vitest";
import { decisionsOf, plainTarget, questionsOf, rulesOf } from "./egress.logic";

const state = {
  mode: "ask" as const,
  rules: [{ verdict: "allow", rule: "example.org", scope: "always" }],
  pending: [{ id: 3, target: "example.com:443", who: "agent", count: 2, first_seen: "a", last_seen: "b", port: 443 }],
  recent: [
    { at: "1", outcome: "connection_refused", who: "agent", target: "a", reason: "" },
    { at: "2", outcome: "connection_allowed", who: "agent", target: "b", reason: "" },
  ],
  connections: 0,
  counters: {},
};

test("what the gateway says is read, the newest decision first", () => {
  expect(questionsOf(state)[0]).toMatchObject({ id: 3, target: "example.com:443", count: 2 });
  expect(rulesOf(state)).toEqual([{ verdict: "allow", rule: "example.org", scope: "always" }]);
  expect(decisionsOf(state).map((row) => row.target)).toEqual(["b", "a"]);
});

test("a name cannot hide what it is", () => {
  expect(plainTarget("example.com:443")).toBe("example.com:443");
  expect(plainTarget("ex\u202emoc.elpma")).toBe("ex\\u{202e}moc.elpma");
  expect(plainTarget("pаypal.com")).toBe("p\\u{430}ypal.com");
});
