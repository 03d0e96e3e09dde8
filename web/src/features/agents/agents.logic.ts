import type { AgentInfo, AgentTrial } from "../../client/api";
import { formatBytes, shorten } from "../../ui/format";
import { visibleText } from "../../ui/visibleText";

/** The progress of the installation of an agent. */
export interface InstallProgress {
  agent: string;
  /** What is being done; "installed" at the end. */
  doing: string;
  done: number;
  total: number;
}

export function readProgress(event: unknown): InstallProgress | null {
  if (typeof event !== "object" || event === null) return null;
  const progress = event as Partial<InstallProgress>;
  if (typeof progress.agent !== "string" || typeof progress.doing !== "string") return null;
  return {
    agent: progress.agent,
    doing: progress.doing,
    done: Number(progress.done ?? 0),
    total: Number(progress.total ?? 0),
  };
}

/** Whether an event tells that an agent was installed. */
export const isInstalled = (event: unknown): boolean => readProgress(event)?.doing === "installed";

export function progressText(progress: InstallProgress): string {
  return progress.total > 0 ? `${progress.doing}: ${progress.done} of ${progress.total}` : `${progress.doing}…`;
}

/** What can be done with an agent. One without a version is part of the computer or of Freehold. */
export function agentActions(agent: AgentInfo): { add: "Add" | "Update" | null; remove: boolean; test: boolean } {
  const hasPackage = agent.version !== null;
  return {
    add: agent.problem === null ? null : hasPackage ? "Update" : "Add",
    remove: hasPackage,
    test: agent.problem === null,
  };
}

/** The problem of an agent without the command that solves it: the page has a button for it. */
export function agentProblem(agent: AgentInfo): string | null {
  return agent.problem?.replace(/: freehold agents add \S+$/, "") ?? null;
}

/** Whether an agent asks before it acts, as far as that is known. */
export function asksText({ asks, mode, may_act_unasked: mayActUnasked }: AgentInfo): string {
  const inMode = mode === null ? "" : ` in mode “${shorten(visibleText(mode), MAX_MODE)}”`;
  if (asks === true) return `Asks before it acts${inMode}.`;
  if (asks === null) return "Its first session shows whether it asks before it acts.";
  return mayActUnasked
    ? `Acts without asking${inMode}, which freehold.toml allows. Isolation and network rules still apply.`
    : `Does not ask before it acts${inMode}, so it is refused. The exception “unasked-agent” in freehold.toml allows it.`;
}

const MAX_MODE = 60;
const seconds = (value: number): string => (value < 10 ? `${value.toFixed(1)} s` : `${Math.round(value)} s`);

/** The results of a test in their order. */
export function trialFacts(trial: AgentTrial): [name: string, value: string][] {
  return [
    ["started in", seconds(trial.start)],
    ["session opened in", seconds(trial.session)],
    ["first output after", trial.first_update === null ? "no output" : seconds(trial.first_update)],
    ["whole turn", seconds(trial.turn)],
    ["memory", formatBytes(trial.memory)],
  ];
}

export function capabilitiesOf(trial: AgentTrial): string[] {
  return Object.entries(trial.capabilities)
    .filter(([, isSupported]) => isSupported)
    .map(([name]) => name.replaceAll("_", " "))
    .sort();
}
