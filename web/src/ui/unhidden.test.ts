import { expect, test } from "vitest";
import { unhidden } from "./unhidden";

test("a command cannot hide what it does", () => {
  expect(unhidden("rm\u202e -rf\u200b /\ttmp\n")).toBe("rm\\u{202e} -rf\\u{200b} /\ttmp\n");
});
