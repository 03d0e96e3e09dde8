import type { PolicyRule, WriteRule } from "../../client/api";

/** The rules to keep when one is forgotten: those of sessions go with their session and are not written. */
export function without(rules: readonly PolicyRule[], id: number): WriteRule[] {
  return rules.filter((rule) => rule.session === null && rule.id !== id).map(({ effect, kind, pattern, exact }) => ({ effect, kind, pattern, exact }));
}

const KINDS: Record<string, string> = { execute: "run", edit: "change", delete: "delete", move: "move", read: "read", search: "search", fetch: "fetch", host: "Freehold’s tool", "*": "anything on" };

export const kindWords = (kind: string): string => KINDS[kind] ?? kind;
