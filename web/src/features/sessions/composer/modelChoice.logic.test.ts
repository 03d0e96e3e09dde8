import { expect, test } from "vitest";
import type { AgentInfo, ModelProvider } from "../../../client/api";
import { modelChoices, modelLabel, providerOf, typedModel } from "./modelChoice.logic";

const provider = (name: string, model: string | null): ModelProvider => ({
  name,
  kind: "openai-compatible",
  address: "",
  model,
  inside: "",
  key: null,
  auth: "key",
  agent: null,
  default: false,
  problem: null,
});
const providers = [provider("local", "qwen3"), provider("openrouter", null)];
const agent = { name: "builtin", models: ["local"], model: "local" } as AgentInfo;

test("a session names a provider, a model at a provider, or a model of its agent", () => {
  expect(providerOf("local", providers)).toBe("local");
  expect(providerOf("openrouter/openai/gpt-5", providers)).toBe("openrouter");
  expect(providerOf("openai/gpt-5", providers)).toBeNull();
  expect(providerOf("gpt-5", providers)).toBeNull();
  expect(providerOf(null, providers)).toBeNull();
});

test("only providers that the agent may use are offered", () => {
  expect(modelChoices(agent, providers)).toEqual([{ value: "local", label: "local (qwen3)" }]);
  expect(modelChoices(undefined, providers)).toHaveLength(2);
});

test("the model of a session is shown also when it is the default", () => {
  expect(modelLabel({ model: null }, agent, providers, null)).toBe("local/qwen3");
  expect(modelLabel({ model: "openrouter/openai/gpt-5" }, agent, providers, null)).toBe("openrouter/openai/gpt-5");
  expect(modelLabel({ model: "openrouter" }, agent, providers, null)).toBe("openrouter");
  expect(modelLabel({ model: null }, undefined, providers, null)).toBeNull();
});

test("a model that was chosen by an option of the agent is the one that is shown", () => {
  const offer = { chosen_model: "Opus" };
  expect(modelLabel({ model: "local/qwen3" }, agent, providers, offer)).toBe("Opus");
  expect(modelLabel({ model: "local/qwen3" }, agent, providers, { chosen_model: null })).toBe("local/qwen3");
});

test("a typed model belongs to the chosen provider", () => {
  expect(typedModel("openrouter", " openai/gpt-5 ")).toBe("openrouter/openai/gpt-5");
  expect(typedModel(null, "gpt-5")).toBe("gpt-5");
  expect(typedModel("local", "")).toBe("");
});
