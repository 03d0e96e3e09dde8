import type { AgentInfo } from "../../../client/api";

export interface AgentChoice {
  name: string;
  title: string;
  /** Whether a session can start with it. */
  usable: boolean;
  isDefault: boolean;
  note: string;
}

/** The agents to choose from: the default first, then usable ones, then those that can be added. */
export function agentChoices(agents: readonly AgentInfo[]): AgentChoice[] {
  const rank = (one: AgentChoice) => (one.isDefault ? 0 : one.usable ? 1 : 2);
  return agents
    .map((agent): AgentChoice => {
      const usable = agent.problem === null;
      const notes = usable
        ? [/^\d/.test(agent.version ?? "") ? `version ${agent.version}` : "", agent.asks ? "" : "acts without asking"]
        : [agent.installed ? (agent.problem ?? "") : `not installed: freehold agents add ${agent.name}`];
      return {
        name: agent.name,
        title: agent.title || agent.name,
        usable,
        isDefault: agent.default,
        note: notes.filter(Boolean).join(" · "),
      };
    })
    .sort((a, b) => rank(a) - rank(b) || a.title.localeCompare(b.title));
}
