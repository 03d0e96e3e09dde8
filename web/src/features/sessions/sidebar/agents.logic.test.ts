import { expect, test } from "vitest";
import type { AgentRow } from "../../../client/api";
import { agentChoices } from "./agents.logic";

const agent = (name: string, more: Partial<AgentRow> = {}): AgentRow => ({ name, title: name, installed: true, version: "1.0", asks: true, default: false, problem: null, ...more });

test("the default comes first, and one that is not here says how to add it", () => {
  const choices = agentChoices([agent("claude", { installed: false, problem: "not installed: …" }), agent("codex"), agent("builtin", { default: true, version: null })]);
  expect(choices.map((one) => one.name)).toEqual(["builtin", "codex", "claude"]);
  expect(choices[2]).toMatchObject({ usable: false, note: "not here yet: freehold agents add claude" });
  expect(choices[1]).toMatchObject({ usable: true, note: "version 1.0" });
});

test("one that does not ask is known for it", () => {
  expect(agentChoices([agent("wild", { asks: false })])[0]?.note).toContain("acts without asking");
});
