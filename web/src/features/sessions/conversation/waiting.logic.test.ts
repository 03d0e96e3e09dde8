import { expect, test } from "vitest";
import { readWaiting } from "./waiting.logic";

test("the place stands apart from the reason, and a setting is code", () => {
  expect(
    readWaiting(
      "Waiting: 2nd of 9; 5 agents are running, which is what 4 GiB hold. `[computer.limits] memory` allows more",
    ),
  ).toEqual({
    place: "Waiting: 2nd of 9",
    reason: [
      { text: "5 agents are running, which is what 4 GiB hold. ", isSetting: false },
      { text: "[computer.limits] memory", isSetting: true },
      { text: " allows more", isSetting: false },
    ],
  });
});

test("a sentence of another form is shown whole", () => {
  expect(readWaiting("Waiting")).toEqual({ place: "Waiting", reason: [] });
});
