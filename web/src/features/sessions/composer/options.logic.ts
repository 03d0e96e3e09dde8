import type { AgentOffer, OfferedChoice } from "../../../client/api";

/** One thing that can be chosen for a session. Without choices it is on or off. */
export interface Choosable {
  id: string;
  name: string;
  /** Null when it is not known what is chosen. */
  value: string | boolean | null;
  choices: OfferedChoice[];
}

/** What the agent lets be chosen, each thing once: modes and models may come by themselves or as options. */
export function choosables(offer: AgentOffer | null): Choosable[] {
  const options = offer?.options;
  if (offer === null || options === null || options === undefined) return [];
  const value = <T>(known: T): T | null => (offer.own ? known : null);
  const has = (category: string) => options.config.some((one) => one.category === category);
  return [
    ...(has("mode") || options.modes.length < 2 ? [] : [{ id: "mode", name: "Mode", value: value(options.mode), choices: options.modes }]),
    ...(has("model") || options.models.length < 2 ? [] : [{ id: "model", name: "Model", value: value(options.model), choices: options.models }]),
    ...options.config.filter((one) => one.choices.length > 1 || typeof one.value === "boolean").map((one) => ({ id: one.id, name: one.name, value: value(one.value), choices: one.choices })),
  ];
}

/** What is chosen, in a few words, for the button that opens the rest. */
export function chosenWords(all: readonly Choosable[]): string {
  const words = all.filter((one) => one.choices.length > 0).map((one) => one.choices.find((choice) => choice.id === one.value)?.name).filter((name) => name !== undefined);
  return words.slice(0, 2).join(" · ") || "Options";
}
