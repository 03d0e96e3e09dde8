import type { PolicyRule, WriteRule } from "../../client/api";

/** The rules to keep when one is forgotten: those of sessions go with their session and are not written. */
export function without(rules: readonly PolicyRule[], id: number): WriteRule[] {
  return rules.filter((rule) => rule.session === null && rule.id !== id).map(({ effect, kind, pattern, exact }) => ({ effect, kind, pattern, exact }));
}

/** The rules to write when one is added. */
export const withRule = (rules: readonly PolicyRule[], rule: WriteRule): WriteRule[] => [...without(rules, -1), rule];

const KINDS: Record<string, string> = { execute: "run", edit: "change", delete: "delete", move: "move", read: "read", search: "search", fetch: "fetch", host: "Freehold’s tool", "*": "anything on" };

export const kindWords = (kind: string): string => KINDS[kind] ?? kind;

/** What a rule can be about, the commonest first. */
export const KIND_CHOICES: readonly { kind: string; label: string }[] = [
  { kind: "execute", label: "Running a command" },
  { kind: "edit", label: "Changing a file" },
  { kind: "delete", label: "Deleting a file" },
  { kind: "read", label: "Reading a file" },
  { kind: "fetch", label: "Fetching from the network" },
  { kind: "*", label: "Anything" },
];
