import { expect, test } from "vitest";
import type { AgentInfo } from "../../client/api";
import {
  agentActions,
  agentProblem,
  asksText,
  capabilitiesOf,
  progressText,
  readProgress,
  trialFacts,
} from "./agents.logic";

const agent: AgentInfo = {
  name: "claude",
  title: "Claude Code",
  installed: true,
  version: "1.2.3",
  asks: true,
  mode: null,
  may_act_unasked: false,
  models: [],
  model: null,
  default: false,
  problem: null,
};

test("an agent has the actions that are possible", () => {
  expect(agentActions(agent)).toEqual({ add: null, remove: true, test: true });
  const absent = { ...agent, installed: false, version: null, problem: "not installed: freehold agents add claude" };
  expect(agentActions(absent)).toEqual({ add: "Add", remove: false, test: false });
  expect(agentProblem(absent)).toBe("not installed");
  expect(agentActions({ ...agent, problem: "older than this Freehold: freehold agents add claude" }).add).toBe(
    "Update",
  );
  expect(agentActions({ ...agent, version: null })).toEqual({ add: null, remove: false, test: true });
});

test("progress is read and shown", () => {
  expect(readProgress({ agent: "claude", doing: "fetching", done: 3, total: 9 })).not.toBeNull();
  expect(readProgress({ agent: 1 })).toBeNull();
  expect(readProgress(null)).toBeNull();
  expect(progressText({ agent: "a", doing: "fetching", done: 3, total: 9 })).toBe("fetching: 3 of 9");
  expect(progressText({ agent: "a", doing: "resolving", done: 0, total: 0 })).toBe("resolving…");
});

test("the facts of a test are in their order", () => {
  const trial = {
    name: "claude",
    version: "1",
    kind: "openai",
    mode: null,
    asks: true,
    capabilities: { load_session: true, images: false, audio: true },
    start: 0.42,
    session: 12,
    first_update: null,
    turn: 1,
    memory: 54e6,
    words: "hello",
  };
  expect(trialFacts(trial).map(([, value]) => value)).toEqual(["0.4 s", "12 s", "no output", "1.0 s", "54 MB"]);
  expect(capabilitiesOf(trial)).toEqual(["audio", "load session"]);
});

test("it is said whether an agent asks before it acts, and in which mode", () => {
  expect(asksText({ ...agent, mode: "ask" })).toBe("Asks before it acts in mode “ask”.");
  expect(asksText({ ...agent, asks: null })).toBe("Its first session shows whether it asks before it acts.");
  expect(asksText({ ...agent, asks: false, mode: "accept-edits" })).toContain("so it is refused");
  expect(asksText({ ...agent, asks: false, may_act_unasked: true })).toContain("which freehold.toml allows");
});
