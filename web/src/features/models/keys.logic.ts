import type { ModelRow, SecretRow } from "../../client/api";

/** The name in the vault that a provider's key goes by; null when its key lives elsewhere, or it wants none. */
export function vaultNameOf(model: Pick<ModelRow, "key">): string | null {
  return model.key?.startsWith("secret:") ? model.key.slice("secret:".length) : null;
}

export interface KeyState {
  words: string;
  tone: "leaf" | "amber" | "quiet";
}

/** How it stands with a provider's key, without ever knowing it. */
export function keyStateOf(model: ModelRow, secrets: readonly SecretRow[] | null): KeyState {
  if (model.key === null) return { words: "needs no key", tone: "quiet" };
  const name = vaultNameOf(model);
  if (name === null) {
    const variable = model.key.slice("env:".length);
    return model.problem === null
      ? { words: `key from ${variable} of the environment`, tone: "leaf" }
      : { words: `${variable} is not set where Freehold was started`, tone: "amber" };
  }
  if (secrets === null) return { words: `key ${name}`, tone: "quiet" };
  return secrets.some((secret) => secret.name === name)
    ? { words: `key ${name} is in the vault`, tone: "leaf" }
    : { words: `key ${name} is missing`, tone: "amber" };
}

export interface KeyRow {
  name: string;
  secret: SecretRow | null;
  /** The providers that use it. */
  of: string[];
}

/** Every key of the vault and every one that a provider wants; those that are missing first. */
export function keyRows(models: readonly ModelRow[], secrets: readonly SecretRow[]): KeyRow[] {
  const wanted = models.map(vaultNameOf).filter((name): name is string => name !== null);
  const names = [...new Set([...wanted, ...secrets.map((secret) => secret.name)])];
  return names
    .map((name) => ({
      name,
      secret: secrets.find((secret) => secret.name === name) ?? null,
      of: models.filter((model) => vaultNameOf(model) === name).map((model) => model.name),
    }))
    .sort((a, b) => Number(a.secret !== null) - Number(b.secret !== null) || a.name.localeCompare(b.name));
}
