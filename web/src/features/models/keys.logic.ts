import type { ModelProvider, SecretInfo } from "../../client/api";

/** The name of a provider's key in the vault; null when it has none there. */
export function vaultName(model: Pick<ModelProvider, "key">): string | null {
  return model.key?.startsWith("secret:") ? model.key.slice("secret:".length) : null;
}

export interface KeyState {
  text: string;
  tone: "leaf" | "amber" | "quiet";
}

/** Whether the key of a provider is set. */
export function keyState(model: ModelProvider, secrets: readonly SecretInfo[] | null): KeyState {
  if (model.key === null) return { text: "no key needed", tone: "quiet" };
  const name = vaultName(model);
  if (name === null) {
    const variable = model.key.slice("env:".length);
    return model.problem === null
      ? { text: `key from the environment variable ${variable}`, tone: "leaf" }
      : { text: `the environment variable ${variable} is not set`, tone: "amber" };
  }
  if (secrets === null) return { text: `key ${name}`, tone: "quiet" };
  return secrets.some((secret) => secret.name === name)
    ? { text: `key ${name} is in the vault`, tone: "leaf" }
    : { text: `key ${name} is missing`, tone: "amber" };
}

export interface KeyRow {
  name: string;
  secret: SecretInfo | null;
  /** The providers that use it. */
  usedBy: string[];
}

/** The keys in the vault and those that a provider needs, missing ones first. */
export function keyRows(models: readonly ModelProvider[], secrets: readonly SecretInfo[]): KeyRow[] {
  const wanted = models.map(vaultName).filter((name): name is string => name !== null);
  const names = [...new Set([...wanted, ...secrets.map((secret) => secret.name)])];
  return names
    .map((name) => ({
      name,
      secret: secrets.find((secret) => secret.name === name) ?? null,
      usedBy: models.filter((model) => vaultName(model) === name).map((model) => model.name),
    }))
    .sort((a, b) => Number(a.secret !== null) - Number(b.secret !== null) || a.name.localeCompare(b.name));
}
