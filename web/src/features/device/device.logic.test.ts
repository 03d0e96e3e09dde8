import { expect, test } from "vitest";
import { parseCode, scopeText } from "./device.logic";

test("a code may be typed with or without dashes, in any case", () => {
  expect(parseCode("#BCDF-GHJK")).toBe("BCDF-GHJK");
  expect(parseCode(" bcdf ghjk ")).toBe("BCDF-GHJK");
  expect(parseCode("BCDF")).toBeNull();
});

test("a scope is shown as what it allows a program to do", () => {
  expect(scopeText("terminal")).toBe("run commands in the computer");
  expect(scopeText("unheard-of")).toBe("unheard-of");
});
