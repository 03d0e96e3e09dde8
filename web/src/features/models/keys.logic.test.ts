import { expect, test } from "vitest";
import type { ModelProvider } from "../../client/api";
import { keyRows, keyState, vaultName } from "./keys.logic";

const model = (name: string, key: string | null, problem: string | null = null): ModelProvider => ({
  name,
  kind: "openai",
  address: "https://api.openai.com/v1",
  model: null,
  inside: "",
  key,
  auth: "key",
  agent: null,
  default: false,
  problem,
});
const kept = { name: "openai", set_at: "1970-01-01T00:00:01Z", used_at: null };

test("the state of a key says its name and whether it is set", () => {
  expect(vaultName(model("a", "secret:openai"))).toBe("openai");
  expect(vaultName(model("a", "env:KEY"))).toBeNull();
  expect(keyState(model("a", "secret:openai"), [kept]).text).toBe("key openai is in the vault");
  expect(keyState(model("a", "secret:other"), [kept])).toEqual({ text: "key other is missing", tone: "amber" });
  expect(keyState(model("a", "env:KEY", "no"), []).text).toBe("the environment variable KEY is not set");
  expect(keyState(model("a", "env:KEY"), []).tone).toBe("leaf");
  expect(keyState(model("a", null), null).text).toBe("no key needed");
});

test("a missing key comes first", () => {
  const rows = keyRows(
    [model("mine", "secret:lost"), model("other", "secret:openai")],
    [kept, { ...kept, name: "github" }],
  );
  expect(rows.map((row) => [row.name, row.secret !== null, row.usedBy])).toEqual([
    ["lost", false, ["mine"]],
    ["github", true, []],
    ["openai", true, ["other"]],
  ]);
});
