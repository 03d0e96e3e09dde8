import type { AgentInfo, AgentOffer, ModelProvider, SessionInfo } from "../../../client/api";

/** A provider that the agent of a session can use. */
export interface ModelChoice {
  /** What the session stores. */
  value: string;
  label: string;
}

/** The provider of a session's model; null for the default of its agent. */
export function providerOf(model: string | null, providers: readonly Pick<ModelProvider, "name">[]): string | null {
  if (model === null) return null;
  const names = new Set(providers.map((one) => one.name));
  if (names.has(model)) return model;
  const [first = ""] = model.split("/", 1);
  return model.includes("/") && names.has(first) ? first : null;
}

/** The providers that the agent may use, each with its usual model. */
export function modelChoices(agent: AgentInfo | undefined, providers: readonly ModelProvider[]): ModelChoice[] {
  return providers
    .filter((one) => agent === undefined || agent.models.includes(one.name))
    .map((one) => ({ value: one.name, label: one.model === null ? one.name : `${one.name} (${one.model})` }));
}

/**
 * The model of a session in words: the one that was chosen by an option of the agent, the one of the session, or what
 * its agent uses by default.
 */
export function modelLabel(
  session: Pick<SessionInfo, "model">,
  agent: AgentInfo | undefined,
  providers: readonly ModelProvider[],
  offer: Pick<AgentOffer, "chosen_model"> | null,
): string | null {
  if (offer?.chosen_model) return offer.chosen_model;
  const name = session.model ?? agent?.model ?? null;
  const provider = providers.find((one) => one.name === name);
  if (provider === undefined) return name;
  return provider.model === null ? provider.name : `${provider.name}/${provider.model}`;
}

/** What a session stores for a model that was typed: at the chosen provider, or at the agent's own. */
export function typedModel(provider: string | null, typed: string): string {
  const name = typed.trim();
  return provider === null || name === "" ? name : `${provider}/${name}`;
}
