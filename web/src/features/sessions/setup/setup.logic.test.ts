import { expect, test } from "vitest";
import type { AgentInfo, ModelProvider, ModelsState } from "../../../client/api";
import { canStart, isSetUp, isSetupProblem, setupOf } from "./setup.logic";

const agent = (name: string, more: Partial<AgentInfo> = {}): AgentInfo => ({
  name,
  title: name,
  installed: true,
  version: "1.0",
  asks: true,
  mode: null,
  may_act_unasked: false,
  models: [],
  model: null,
  default: false,
  problem: null,
  ...more,
});
const absent = (name: string, more: Partial<AgentInfo> = {}) =>
  agent(name, { installed: false, version: null, problem: `not installed: freehold agents add ${name}`, ...more });
const none: ModelsState = { models: [], help: "how to", stopped: false, unapplied: null };
const some: ModelsState = { models: [{ name: "local" } as ModelProvider], help: null, stopped: false, unapplied: null };

test("a new Freehold needs its default agent and a model", () => {
  const setup = setupOf([absent("claude"), absent("builtin", { default: true })], none);
  expect(setup).toMatchObject({ missingAgent: { name: "builtin" }, needsModel: true, agent: null });
  expect(setup && isSetUp(setup)).toBe(false);
});

test("with an agent and a model the setup is complete", () => {
  const setup = setupOf([agent("builtin", { default: true })], some);
  expect(setup).toEqual({ missingAgent: null, needsModel: false, hasBuiltin: true, agent: null });
  expect(setup && isSetUp(setup)).toBe(true);
});

test("when the default agent is not installed, another one is used", () => {
  expect(setupOf([absent("builtin", { default: true }), agent("codex")], some)).toEqual({
    missingAgent: null,
    needsModel: false,
    hasBuiltin: false,
    agent: "codex",
  });
});

test("the setup is unknown until both are fetched", () => {
  expect(setupOf(null, some)).toBeNull();
  expect(setupOf([agent("builtin")], null)).toBeNull();
});

test("only a problem of the setup leads to the steps", () => {
  const setup = setupOf([agent("builtin", { default: true })], none);
  expect(isSetupProblem("agent.no-model", setup)).toBe(true);
  expect(isSetupProblem("session.not-found", setup)).toBe(false);
  expect(isSetupProblem("agent.no-model", setupOf([agent("builtin", { default: true })], some))).toBe(false);
  expect(isSetupProblem("agent.no-model", null)).toBe(false);
});

test("no session starts without a model", () => {
  const noModel = setupOf([agent("builtin", { default: true }), agent("mine")], none)!;
  expect([canStart(noModel, null), canStart(noModel, "builtin"), canStart(noModel, "mine")]).toEqual([
    false,
    false,
    true,
  ]);
  const ready = setupOf([agent("builtin", { default: true })], some)!;
  expect([canStart(ready, null), canStart(ready, "builtin")]).toEqual([true, true]);
  expect(canStart(setupOf([absent("builtin", { default: true })], some)!, "builtin")).toBe(false);
});
