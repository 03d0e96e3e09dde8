import { expect, test } from "vitest";
import type { AgentOffer, OfferedOption } from "../../../client/api";
import { agentOptions, optionsLabel } from "./options.logic";

const choice = (id: string) => ({ id, name: id.toUpperCase(), description: "" });
const offer = (config: OfferedOption[] = [], own = true): AgentOffer => ({
  own,
  chosen_model: null,
  commands: [],
  options: {
    mode: "ask",
    modes: [choice("ask"), choice("plan")],
    model: "m1",
    models: [choice("m1")],
    config,
    asks: true,
  },
});

test("an option with one choice is not shown", () => {
  expect(agentOptions(offer()).map((one) => one.id)).toEqual(["mode"]);
  expect(agentOptions(null)).toEqual([]);
});

test("a mode that also comes as an option is shown once", () => {
  const config: OfferedOption = {
    id: "m",
    name: "Mode",
    category: "mode",
    type: "select",
    value: "ask",
    choices: [choice("ask"), choice("plan")],
  };
  expect(agentOptions(offer([config])).map((one) => one.id)).toEqual(["m"]);
});

test("a value of another session is not shown as chosen here", () => {
  const [mode] = agentOptions(offer([], false));
  expect(mode?.value).toBeNull();
  expect(optionsLabel(agentOptions(offer([], false)))).toBe("Options");
  expect(optionsLabel(agentOptions(offer()))).toBe("ASK");
});
