import type { AgentRow, AgentTrial } from "../../client/api";
import { bytes } from "../../ui/moments";

/** How far the bringing of an agent is. */
export interface Installing {
  agent: string;
  doing: string;
  done: number;
  total: number;
}

export function readInstalling(data: unknown): Installing | null {
  if (typeof data !== "object" || data === null) return null;
  const told = data as Partial<Installing>;
  if (typeof told.agent !== "string" || typeof told.doing !== "string") return null;
  return { agent: told.agent, doing: told.doing, done: Number(told.done ?? 0), total: Number(told.total ?? 0) };
}

export function progressWords(told: Installing): string {
  return told.total > 0 ? `${told.doing}: ${told.done} of ${told.total}` : `${told.doing}…`;
}

/** What can be done with an agent now. One without a package is in the computer already, or is ours. */
export function offersOf(agent: AgentRow): { add: "Add" | "Update" | null; remove: boolean; test: boolean } {
  const brought = agent.version !== null;
  return {
    add: agent.problem === null ? null : brought ? "Update" : "Add",
    remove: brought,
    test: agent.problem === null,
  };
}

/** The command line's advice, for which there is a button here. */
export function problemWords(agent: AgentRow): string | null {
  return agent.problem?.replace(/: freehold agents add \S+$/, "") ?? null;
}

const seconds = (value: number): string => (value < 10 ? `${value.toFixed(1)} s` : `${Math.round(value)} s`);

/** What a trial saw, as facts in the order they happened. */
export function trialFacts(trial: AgentTrial): [string, string][] {
  return [
    ["started in", seconds(trial.start)],
    ["opened a session in", seconds(trial.session)],
    ["first word after", trial.first_update === null ? "none came" : seconds(trial.first_update)],
    ["whole turn", seconds(trial.turn)],
    ["memory", bytes(trial.memory)],
  ];
}

export function capabilitiesOf(trial: AgentTrial): string[] {
  return Object.entries(trial.capabilities)
    .filter(([, can]) => can)
    .map(([name]) => name.replaceAll("_", " "))
    .sort();
}
