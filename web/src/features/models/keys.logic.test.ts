import { expect, test } from "vitest";
import type { ModelRow } from "../../client/api";
import { keyRows, keyStateOf, vaultNameOf } from "./keys.logic";

const model = (name: string, key: string | null, problem: string | null = null): ModelRow => ({
  name,
  kind: "openai",
  address: "https://api.openai.com/v1",
  model: null,
  inside: "",
  key,
  default: false,
  problem,
});
const kept = { name: "openai", set_at: 1, used_at: null };

test("a key is told by its name and whether it is there", () => {
  expect(vaultNameOf(model("a", "secret:openai"))).toBe("openai");
  expect(vaultNameOf(model("a", "env:KEY"))).toBeNull();
  expect(keyStateOf(model("a", "secret:openai"), [kept]).words).toBe("key openai is in the vault");
  expect(keyStateOf(model("a", "secret:other"), [kept])).toEqual({ words: "key other is missing", tone: "amber" });
  expect(keyStateOf(model("a", "env:KEY", "no"), []).words).toBe("KEY is not set where Freehold was started");
  expect(keyStateOf(model("a", "env:KEY"), []).tone).toBe("leaf");
  expect(keyStateOf(model("a", null), null).words).toBe("needs no key");
});

test("a key that is wanted and missing stands first", () => {
  const rows = keyRows([model("mine", "secret:lost"), model("other", "secret:openai")], [kept, { ...kept, name: "github" }]);
  expect(rows.map((row) => [row.name, row.secret !== null, row.of])).toEqual([
    ["lost", false, ["mine"]],
    ["github", true, []],
    ["openai", true, ["other"]],
  ]);
});
