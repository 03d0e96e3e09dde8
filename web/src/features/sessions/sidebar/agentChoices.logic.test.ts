import { expect, test } from "vitest";
import type { AgentInfo } from "../../../client/api";
import { agentChoices } from "./agentChoices.logic";

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

test("the default comes first, and an agent that is not installed says how to add it", () => {
  const choices = agentChoices([
    agent("claude", { installed: false, problem: "not installed: …" }),
    agent("codex"),
    agent("builtin", { default: true, version: null }),
  ]);
  expect(choices.map((one) => one.name)).toEqual(["builtin", "codex", "claude"]);
  expect(choices[2]).toMatchObject({ usable: false, note: "not installed: freehold agents add claude" });
  expect(choices[1]).toMatchObject({ usable: true, note: "version 1.0" });
});

test("an agent that does not ask is marked", () => {
  expect(agentChoices([agent("wild", { asks: false })])[0]?.note).toContain("acts without asking");
});
