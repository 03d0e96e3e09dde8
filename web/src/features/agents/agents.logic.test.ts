import { expect, test } from "vitest";
import type { AgentRow } from "../../client/api";
import { capabilitiesOf, offersOf, problemWords, progressWords, readInstalling, trialFacts } from "./agents.logic";

const agent: AgentRow = { name: "claude", title: "Claude Code", installed: true, version: "1.2.3", asks: true, default: false, problem: null };

test("an agent offers what can be done with it", () => {
  expect(offersOf(agent)).toEqual({ add: null, remove: true, test: true });
  const absent = { ...agent, installed: false, version: null, problem: "not installed: freehold agents add claude" };
  expect(offersOf(absent)).toEqual({ add: "Add", remove: false, test: false });
  expect(problemWords(absent)).toBe("not installed");
  expect(offersOf({ ...agent, problem: "older than this Freehold: freehold agents add claude" }).add).toBe("Update");
  expect(offersOf({ ...agent, version: null })).toEqual({ add: null, remove: false, test: true });
});

test("progress is read and said", () => {
  expect(readInstalling({ agent: "claude", doing: "fetching", done: 3, total: 9 })).not.toBeNull();
  expect(readInstalling({ agent: 1 })).toBeNull();
  expect(readInstalling(null)).toBeNull();
  expect(progressWords({ agent: "a", doing: "fetching", done: 3, total: 9 })).toBe("fetching: 3 of 9");
  expect(progressWords({ agent: "a", doing: "resolving", done: 0, total: 0 })).toBe("resolving…");
});

test("a trial is told in the order it happened", () => {
  const trial = {
    name: "claude",
    version: "1",
    capabilities: { load_session: true, images: false, audio: true },
    start: 0.42,
    session: 12,
    first_update: null,
    turn: 1,
    memory: 54e6,
    words: "hello",
  };
  expect(trialFacts(trial).map(([, value]) => value)).toEqual(["0.4 s", "12 s", "none came", "1.0 s", "54 MB"]);
  expect(capabilitiesOf(trial)).toEqual(["audio", "load session"]);
});
