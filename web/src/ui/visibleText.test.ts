import { expect, test } from "vitest";
import { visibleText } from "./visibleText";

test("a command cannot hide what it does", () => {
  expect(visibleText("rm\u202e -rf\u200b /\ttmp\n")).toBe("rm⟨U+202E⟩ -rf⟨U+200B⟩ /\ttmp\n");
  expect(visibleText("a\u00a0b\u3164c\ufe0fd\u001b[1m\r")).toBe("a⟨U+00A0⟩b⟨U+3164⟩c⟨U+FE0F⟩d⟨U+001B⟩[1m⟨U+000D⟩");
});

test("text of any language stays as it is", () => {
  expect(visibleText("grüße 世界 שלום 👍 e\u0301")).toBe("grüße 世界 שלום 👍 e\u0301");
});

test("more marks than a letter can have are spelled out", () => {
  expect(visibleText(`e\u0301${"a"}${"\u0301".repeat(18)}b`)).toBe(`e\u0301a${"\u0301".repeat(16)}⟨U+0301⟩⟨U+0301⟩b`);
});
