import { expect, test } from "vitest";
import type { PermissionRule } from "../../client/api";
import { withoutRule, withRule } from "./permissionRules.logic";

const rule = (id: number, session: string | null = null): PermissionRule => ({
  id,
  effect: "allow",
  kind: "execute",
  pattern: `p${id}`,
  exact: true,
  session,
});

test("removing a rule writes the others, but not those of a session", () => {
  expect(withoutRule([rule(1), rule(2), rule(3, "s")], 1)).toEqual([
    { effect: "allow", kind: "execute", pattern: "p2", exact: true },
  ]);
});

test("adding a rule keeps the others", () => {
  const added = { effect: "deny", kind: "execute", pattern: "rm -rf *", exact: false } as const;
  expect(withRule([rule(1), rule(3, "s")], added).map((one) => one.pattern)).toEqual(["p1", "rm -rf *"]);
});
