import type { AgentRow, ModelsState } from "../../../client/api";

/** What is still missing before anyone can work here. */
export interface FirstSteps {
  /** The agent to bring, as long as none can work. */
  add: AgentRow | null;
  /** How to connect a model, as long as none is. */
  help: string | null;
  /** The agent a new session gets when nobody chose: null for freehold.toml's default. */
  agent: string | null;
}

/** Null while it is not known. */
export function firstSteps(agents: readonly AgentRow[] | null, models: ModelsState | null): FirstSteps | null {
  if (agents === null || models === null) return null;
  const usable = agents.filter((one) => one.problem === null);
  const byDefault = agents.find((one) => one.default) ?? agents[0] ?? null;
  return {
    add: usable.length > 0 ? null : byDefault,
    help: models.models.length > 0 ? null : (models.help ?? ""),
    agent: byDefault?.problem === null ? null : (usable[0]?.name ?? null),
  };
}

export const isReady = (steps: FirstSteps): boolean => steps.add === null && steps.help === null;

/** Whether a session with an agent, or with none that is named, can lead anywhere: one that is described in freehold.toml may bring a model of its own. */
export function mayBegin(steps: FirstSteps, agent: string | null): boolean {
  return agent === null || agent === "builtin" ? isReady(steps) : steps.add === null;
}

const MISSING = new Set(["agent.not-installed", "agent.no-model", "models.none-configured"]);

/** Whether a session could not be begun for want of what the first steps bring. */
export const isMissing = (code: string, steps: FirstSteps | null): boolean => MISSING.has(code) && steps !== null && !isReady(steps);
