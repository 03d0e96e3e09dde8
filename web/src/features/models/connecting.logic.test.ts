import { expect, test } from "vitest";
import { piecesOf } from "./connecting.logic";

test("what goes into freehold.toml is told from what is to be read, and copied without its indent", () => {
  const help = 'No model yet.\nRun: freehold restart gateway\n\nWith a key:\n\n  [models.anthropic]\n  kind = "anthropic"\n\nWithout:\n\n  [models.local]\n  model = "qwen"\n';
  expect(piecesOf(help)).toEqual([
    { kind: "words", text: "No model yet.\nRun: freehold restart gateway" },
    { kind: "words", text: "With a key:" },
    { kind: "toml", text: '[models.anthropic]\nkind = "anthropic"' },
    { kind: "words", text: "Without:" },
    { kind: "toml", text: '[models.local]\nmodel = "qwen"' },
  ]);
  expect(piecesOf("")).toEqual([]);
});
