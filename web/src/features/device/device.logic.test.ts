import { expect, test } from "vitest";
import { codeFrom, meaningOf } from "./device.logic";

test("a code is understood however it is typed", () => {
  expect(codeFrom("#BCDF-GHJK")).toBe("BCDF-GHJK");
  expect(codeFrom(" bcdf ghjk ")).toBe("BCDF-GHJK");
  expect(codeFrom("BCDF")).toBeNull();
});

test("a scope is shown as what it lets a program do", () => {
  expect(meaningOf("terminal")).toBe("run commands in the computer");
  expect(meaningOf("unheard-of")).toBe("unheard-of");
});
