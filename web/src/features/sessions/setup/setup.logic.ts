import type { AgentInfo, ModelsState } from "../../../client/api";

/** What is missing before a session can start. */
export interface Setup {
  /** The agent to add; null when one is usable. */
  missingAgent: AgentInfo | null;
  /** Whether no model is connected. */
  needsModel: boolean;
  /** Whether Freehold's own agent, which plays the tour, is usable. */
  hasBuiltin: boolean;
  /** The agent of a new session when none is chosen; null for the default of freehold.toml. */
  agent: string | null;
}

/** Null while it is not known. */
export function setupOf(agents: readonly AgentInfo[] | null, models: ModelsState | null): Setup | null {
  if (agents === null || models === null) return null;
  const usable = agents.filter((one) => one.problem === null);
  const defaultAgent = agents.find((one) => one.default) ?? agents[0] ?? null;
  return {
    missingAgent: usable.length > 0 ? null : defaultAgent,
    needsModel: models.models.length === 0,
    hasBuiltin: usable.some((one) => one.name === "builtin"),
    agent: defaultAgent?.problem === null ? null : (usable[0]?.name ?? null),
  };
}

export const isSetUp = (setup: Setup): boolean => setup.missingAgent === null && !setup.needsModel;

/** Whether a session can start. An agent of freehold.toml may have a model of its own. */
export function canStart(setup: Setup, agent: string | null): boolean {
  return agent === null || agent === "builtin" ? isSetUp(setup) : setup.missingAgent === null;
}

const SETUP_PROBLEMS = new Set(["agent.not-installed", "agent.no-model", "models.none-configured"]);

/** Whether a session could not start because the setup is not complete. */
export const isSetupProblem = (code: string, setup: Setup | null): boolean =>
  SETUP_PROBLEMS.has(code) && setup !== null && !isSetUp(setup);
