import { expect, test } from "vitest";
import type { AgentOffer, OfferedOption } from "../../../client/api";
import { choosables, chosenWords } from "./options.logic";

const choice = (id: string) => ({ id, name: id.toUpperCase(), description: "" });
const offer = (config: OfferedOption[] = [], own = true): AgentOffer => ({
  own,
  commands: [],
  options: { mode: "ask", modes: [choice("ask"), choice("plan")], model: "m1", models: [choice("m1")], config, asks: true },
});

test("what has but one choice is none", () => {
  expect(choosables(offer()).map((one) => one.id)).toEqual(["mode"]);
  expect(choosables(null)).toEqual([]);
});

test("a mode that comes as an option is there once", () => {
  const config: OfferedOption = { id: "m", name: "Mode", category: "mode", type: "select", value: "ask", choices: [choice("ask"), choice("plan")] };
  expect(choosables(offer([config])).map((one) => one.id)).toEqual(["m"]);
});

test("what another session chose is not told as chosen here", () => {
  const [mode] = choosables(offer([], false));
  expect(mode?.value).toBeNull();
  expect(chosenWords(choosables(offer([], false)))).toBe("Options");
  expect(chosenWords(choosables(offer()))).toBe("ASK");
});
