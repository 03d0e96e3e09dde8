import type { ConnectModel, FoundProvider, KnownProvider, ModelProvider, OfferedModel } from "../../client/api";

/** What the owner has filled in. */
export interface ConnectFields {
  name: string;
  url: string;
  key: string;
  model: string;
  isDefault: boolean;
}

/** The fields at the start: a name that is free, and the usual address of the provider. */
export function firstFields(known: KnownProvider, connected: readonly Pick<ModelProvider, "name">[]): ConnectFields {
  const isFirst = connected.length === 0;
  return { name: freeName(known.name, connected), url: known.address ?? "", key: "", model: "", isDefault: isFirst };
}

/** `name`, or with a number when a provider has it already. */
export function freeName(name: string, connected: readonly Pick<ModelProvider, "name">[]): string {
  const taken = new Set(connected.map((one) => one.name));
  let free = name;
  for (let number = 2; taken.has(free); number++) free = `${name}-${number}`;
  return free;
}

/** Whether the owner says the address: for a server of their own. */
export const asksForAddress = (known: KnownProvider): boolean => known.local || known.address === null;

export const needsKey = (known: KnownProvider): boolean => !known.local && known.address !== null;

/** The body of the request that tries or connects it. */
export function connectBody(known: KnownProvider, fields: ConnectFields): ConnectModel {
  return {
    kind: known.kind,
    auth: known.auth,
    ...(asksForAddress(known)
      ? { base_url: fields.url.trim() }
      : known.kind === "openai-compatible"
        ? { base_url: known.address }
        : {}),
    ...(fields.key.trim() === "" ? {} : { key: fields.key.trim() }),
    ...(fields.model === "" ? {} : { model: fields.model }),
    default: fields.isDefault,
  };
}

/** The body that connects something that was found, with one press. `model` is the one that its test suggested. */
export function foundBody(
  found: FoundProvider,
  known: KnownProvider,
  model: string | null,
  isFirst: boolean,
): ConnectModel {
  return {
    kind: known.kind,
    auth: known.auth,
    ...(known.kind === "openai-compatible" ? { base_url: known.address } : {}),
    ...(found.variable === null ? {} : { variable: found.variable }),
    ...(model === null ? {} : { model }),
    default: isFirst,
  };
}

/** The suggested model first, then those with a price: those are the ones for text. The rest keeps its order. */
export function sortOffered(offered: readonly OfferedModel[], suggested: string | null): OfferedModel[] {
  const place = (one: OfferedModel) => (one.name === suggested ? 0 : one.input_price === null ? 2 : 1);
  return [...offered].sort((one, other) => place(one) - place(other));
}

/** "claude-sonnet-4-5 · $3 in, $15 out · 200k" */
export function offeredLabel({ name, input_price, output_price, window }: OfferedModel): string {
  const price = input_price === null ? null : `$${input_price} in, $${output_price ?? 0} out`;
  return [name, price, window === null ? null : windowLabel(window)].filter((part) => part !== null).join(" · ");
}

function windowLabel(tokens: number): string {
  if (tokens >= 1_000_000) return `${Math.round(tokens / 100_000) / 10}M`;
  return tokens >= 1_000 ? `${Math.round(tokens / 1_000)}k` : String(tokens);
}
