import { expect, test } from "vitest";
import type { PolicyRule } from "../../client/api";
import { without, withRule } from "./rules.logic";

const rule = (id: number, session: string | null = null): PolicyRule => ({ id, effect: "allow", kind: "execute", pattern: `p${id}`, exact: true, session });

test("forgetting one rule writes the others, and none of a session's as if it lasted", () => {
  expect(without([rule(1), rule(2), rule(3, "s")], 1)).toEqual([{ effect: "allow", kind: "execute", pattern: "p2", exact: true }]);
});

test("adding one keeps the others", () => {
  const added = { effect: "deny", kind: "execute", pattern: "rm -rf *", exact: false } as const;
  expect(withRule([rule(1), rule(3, "s")], added).map((one) => one.pattern)).toEqual(["p1", "rm -rf *"]);
});
