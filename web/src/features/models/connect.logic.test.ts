import { expect, test } from "vitest";
import type { FoundProvider, KnownProvider } from "../../client/api";
import { connectBody, firstFields, foundBody, freeName, needsKey, offeredLabel, sortOffered } from "./connect.logic";

const anthropic: KnownProvider = {
  name: "anthropic",
  title: "Anthropic",
  kind: "anthropic",
  auth: "key",
  address: "https://api.anthropic.com",
  key_page: "https://console.anthropic.com/settings/keys",
  local: false,
  agent: null,
  note: "",
};
const groq: KnownProvider = {
  ...anthropic,
  name: "groq",
  kind: "openai-compatible",
  address: "https://api.groq.com/openai/v1",
};
const ollama: KnownProvider = {
  ...groq,
  name: "ollama",
  address: "http://127.0.0.1:11434/v1",
  key_page: null,
  local: true,
};
const custom: KnownProvider = { ...groq, name: "custom", address: null, key_page: null };

test("a second provider of the same kind gets a name that is free", () => {
  expect(freeName("openai", [])).toBe("openai");
  expect(freeName("openai", [{ name: "openai" }, { name: "openai-2" }])).toBe("openai-3");
});

test("the first provider is the default", () => {
  expect(firstFields(anthropic, []).isDefault).toBe(true);
  expect(firstFields(anthropic, [{ name: "local" }]).isDefault).toBe(false);
});

test("an address is sent only where the kind has no usual one", () => {
  const fields = { ...firstFields(anthropic, []), key: " sk-1 " };
  expect(connectBody(anthropic, fields)).toEqual({ kind: "anthropic", auth: "key", key: "sk-1", default: true });
  expect(connectBody(groq, fields)).toMatchObject({ base_url: "https://api.groq.com/openai/v1", key: "sk-1" });
  const own = { ...firstFields(ollama, []), url: " http://10.0.0.7:11434/v1 ", model: "qwen3" };
  expect(connectBody(ollama, own)).toEqual({
    kind: "openai-compatible",
    auth: "key",
    base_url: "http://10.0.0.7:11434/v1",
    model: "qwen3",
    default: true,
  });
});

test("only a server of one's own may have no key, and its key is sent when it has one", () => {
  const own = { ...firstFields(ollama, []), key: " sk-local " };
  expect(connectBody(ollama, own)).toMatchObject({ base_url: "http://127.0.0.1:11434/v1", key: "sk-local" });
  expect([anthropic, groq, ollama, custom].map(needsKey)).toEqual([true, true, false, false]);
});

test("what was found is connected as it was found", () => {
  const key: FoundProvider = {
    name: "groq",
    title: "Groq",
    variable: "GROQ_API_KEY",
    address: groq.address,
    models: [],
    words: "",
  };
  expect(foundBody(key, groq, null, true)).toEqual({
    kind: "openai-compatible",
    auth: "key",
    base_url: "https://api.groq.com/openai/v1",
    variable: "GROQ_API_KEY",
    default: true,
  });
  const server: FoundProvider = {
    name: "ollama",
    title: "Ollama",
    variable: null,
    address: ollama.address,
    models: ["nomic-embed-text", "qwen3"],
    words: "",
  };
  expect(foundBody(server, ollama, "qwen3", false)).toMatchObject({ model: "qwen3", default: false });
});

test("a model is shown with its prices and its context where they are known", () => {
  expect(offeredLabel({ name: "a", input_price: 3, output_price: 15, window: 200_000 })).toBe(
    "a · $3 in, $15 out · 200k",
  );
  expect(offeredLabel({ name: "a", input_price: null, output_price: null, window: 1_048_576 })).toBe("a · 1M");
  expect(offeredLabel({ name: "a", input_price: null, output_price: null, window: null })).toBe("a");
});

test("the suggested model comes first, then those with a price", () => {
  const [one, two, three] = [
    { name: "whisper", input_price: null, output_price: null, window: null },
    { name: "b", input_price: 1, output_price: 2, window: null },
    { name: "c", input_price: 1, output_price: 2, window: null },
  ] as const;
  expect(sortOffered([one, two, three], null).map((each) => each.name)).toEqual(["b", "c", "whisper"]);
  expect(sortOffered([one, two, three], "c").map((each) => each.name)).toEqual(["c", "b", "whisper"]);
});
