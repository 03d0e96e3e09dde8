import { expect, test } from "vitest";
import { splitHelp } from "./connectHelp.logic";

test("lines for freehold.toml are separate from the text and lose their indent", () => {
  const help =
    'No model yet.\nRun: freehold restart gateway\n\nWith a key:\n\n  [models.anthropic]\n  kind = "anthropic"\n\nWithout:\n\n  [models.local]\n  model = "qwen"\n';
  expect(splitHelp(help)).toEqual([
    { kind: "text", text: "No model yet.\nRun: freehold restart gateway" },
    { kind: "text", text: "With a key:" },
    { kind: "toml", text: '[models.anthropic]\nkind = "anthropic"' },
    { kind: "text", text: "Without:" },
    { kind: "toml", text: '[models.local]\nmodel = "qwen"' },
  ]);
  expect(splitHelp("")).toEqual([]);
});
