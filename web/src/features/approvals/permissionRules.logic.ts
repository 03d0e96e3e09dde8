import type { PermissionRule, WritePermissionRule } from "../../client/api";

/** The rules to write when one is removed. Rules of a session end with it and are not written. */
export function withoutRule(rules: readonly PermissionRule[], id: number): WritePermissionRule[] {
  return rules
    .filter((rule) => rule.session === null && rule.id !== id)
    .map(({ effect, kind, pattern, exact }) => ({ effect, kind, pattern, exact }));
}

/** The rules to write when one is added. */
export const withRule = (rules: readonly PermissionRule[], rule: WritePermissionRule): WritePermissionRule[] => [
  ...withoutRule(rules, -1),
  rule,
];

const KINDS: Record<string, string> = {
  execute: "run",
  edit: "change",
  delete: "delete",
  move: "move",
  read: "read",
  search: "search",
  fetch: "connect to",
  host: "Freehold tool",
  "*": "any action on",
};

export const kindText = (kind: string): string => KINDS[kind] ?? kind;

/** The kinds of action that a rule can be about, the most common first. */
export const KIND_CHOICES: readonly { kind: string; label: string }[] = [
  { kind: "execute", label: "Run a command" },
  { kind: "edit", label: "Change a file" },
  { kind: "delete", label: "Delete a file" },
  { kind: "read", label: "Read a file" },
  { kind: "fetch", label: "Use the network" },
  { kind: "*", label: "Any action (never allows commands or host tools)" },
];
