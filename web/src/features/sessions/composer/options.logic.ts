import type { AgentOffer, OfferedChoice } from "../../../client/api";

/** An option of the agent that can be changed for a session. Without choices it is on or off. */
export interface AgentOption {
  id: string;
  name: string;
  /** Null when the current value is not known. */
  value: string | boolean | null;
  choices: OfferedChoice[];
}

/** The options of the agent, each one once. Modes and models may come by themselves or as options. */
export function agentOptions(offer: AgentOffer | null): AgentOption[] {
  const options = offer?.options;
  if (offer === null || options === null || options === undefined) return [];
  const value = <T>(known: T): T | null => (offer.own ? known : null);
  const has = (category: string) => options.config.some((one) => one.category === category);
  return [
    ...(has("mode") || options.modes.length < 2
      ? []
      : [{ id: "mode", name: "Mode", value: value(options.mode), choices: options.modes }]),
    ...(has("model") || options.models.length < 2
      ? []
      : [{ id: "model", name: "Model", value: value(options.model), choices: options.models }]),
    ...options.config
      .filter((one) => one.choices.length > 1 || typeof one.value === "boolean")
      .map((one) => ({ id: one.id, name: one.name, value: value(one.value), choices: one.choices })),
  ];
}

/** The label of the button that opens the options: the first chosen values. */
export function optionsLabel(all: readonly AgentOption[]): string {
  const words = all
    .filter((one) => one.choices.length > 0)
    .map((one) => one.choices.find((choice) => choice.id === one.value)?.name)
    .filter((name) => name !== undefined);
  return words.slice(0, 2).join(" · ") || "Options";
}
