import { expect, test } from "vitest";
import {
  answerChoices,
  decisionsOf,
  grantNote,
  networkRequestsOf,
  reachText,
  rulesOf,
  visibleTarget,
} from "./egress.logic";

const state = {
  mode: "ask" as const,
  rules: [{ verdict: "allow", rule: "example.org", reach: "conversation", session: "s1" }],
  pending: [
    {
      id: 3,
      target: "example.com:443",
      who: "agent",
      count: 2,
      first_seen: "a",
      last_seen: "b",
      port: 443,
      session: "s1",
    },
    {
      id: 4,
      target: "example.net:443",
      who: "agent",
      count: 1,
      first_seen: "a",
      last_seen: "b",
      port: 443,
      session: null,
    },
  ],
  recent: [
    { at: "1", outcome: "connection_refused", who: "agent", target: "a", reason: "" },
    { at: "2", outcome: "connection_allowed", who: "agent", target: "b", reason: "" },
  ],
  connections: 0,
  counters: {},
};

test("the state of the gateway is read, the newest decision first", () => {
  expect(networkRequestsOf(state)[0]).toMatchObject({ id: 3, target: "example.com:443", count: 2, session: "s1" });
  expect(networkRequestsOf(null)).toEqual([]);
  expect(rulesOf(state)).toEqual([{ verdict: "allow", pattern: "example.org", reach: "conversation", session: "s1" }]);
  expect(decisionsOf(state).map((row) => row.target)).toEqual(["b", "a"]);
});

test("every answer says exactly what it grants, and a request without a session has no conversation", () => {
  const [known, unknown] = networkRequestsOf(state);
  expect(answerChoices(known!).map((choice) => choice.answer)).toEqual([
    "once",
    "conversation",
    "until_restart",
    "always",
    "never",
  ]);
  expect(answerChoices(known!)[1]).toEqual({
    answer: "conversation",
    label: "This conversation",
    effect: "Allow example.com:443, for this conversation only",
  });
  expect(answerChoices(unknown!).map((choice) => choice.label)).toEqual(["Once", "Until restart", "Always", "Never"]);
  expect(reachText("always")).toBe("always, for all sessions");
  expect(grantNote("example.com:443", ["once", "conversation", "until_restart", "always"])).toBe(
    "“This conversation” allows example.com:443 for this session only. “Until restart” and “Always” allow it for all sessions.",
  );
});

test("a host name cannot look like another one", () => {
  expect(visibleTarget("example.com:443")).toBe("example.com:443");
  expect(visibleTarget("ex\u202emoc.elpma")).toBe("ex\\u{202e}moc.elpma");
  expect(visibleTarget("pаypal.com")).toBe("p\\u{430}ypal.com");
});
