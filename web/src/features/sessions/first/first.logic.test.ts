import { expect, test } from "vitest";
import type { AgentRow, ModelRow, ModelsState } from "../../../client/api";
import { firstSteps, isMissing, isReady, mayBegin } from "./first.logic";

const agent = (name: string, more: Partial<AgentRow> = {}): AgentRow => ({ name, title: name, installed: true, version: "1.0", asks: true, default: false, problem: null, ...more });
const absent = (name: string, more: Partial<AgentRow> = {}) => agent(name, { installed: false, version: null, problem: `not installed: freehold agents add ${name}`, ...more });
const none: ModelsState = { models: [], help: "how to", stopped: false };
const some: ModelsState = { models: [{ name: "local" } as ModelRow], help: null, stopped: false };

test("a new Freehold asks for its default agent and for a model", () => {
  const steps = firstSteps([absent("claude"), absent("builtin", { default: true })], none);
  expect(steps).toMatchObject({ add: { name: "builtin" }, help: "how to", agent: null });
  expect(steps && isReady(steps)).toBe(false);
});

test("with an agent and a model there is nothing to do first", () => {
  const steps = firstSteps([agent("builtin", { default: true })], some);
  expect(steps).toEqual({ add: null, help: null, agent: null });
  expect(steps && isReady(steps)).toBe(true);
});

test("where the default is not here, one that is works", () => {
  expect(firstSteps([absent("builtin", { default: true }), agent("codex")], some)).toEqual({ add: null, help: null, agent: "codex" });
});

test("nothing is claimed before it is known", () => {
  expect(firstSteps(null, some)).toBeNull();
  expect(firstSteps([agent("builtin")], null)).toBeNull();
});

test("only what the steps can mend leads to them", () => {
  const steps = firstSteps([agent("builtin", { default: true })], none);
  expect(isMissing("agent.no-model", steps)).toBe(true);
  expect(isMissing("session.not-found", steps)).toBe(false);
  expect(isMissing("agent.no-model", firstSteps([agent("builtin", { default: true })], some))).toBe(false);
  expect(isMissing("agent.no-model", null)).toBe(false);
});

test("no session begins where nobody can think", () => {
  const noModel = firstSteps([agent("builtin", { default: true }), agent("mine")], none)!;
  expect([mayBegin(noModel, null), mayBegin(noModel, "builtin"), mayBegin(noModel, "mine")]).toEqual([false, false, true]);
  const ready = firstSteps([agent("builtin", { default: true })], some)!;
  expect([mayBegin(ready, null), mayBegin(ready, "builtin")]).toEqual([true, true]);
  expect(mayBegin(firstSteps([absent("builtin", { default: true })], some)!, "builtin")).toBe(false);
});
