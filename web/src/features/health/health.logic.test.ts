import { expect, test } from "vitest";
import { inOrderOfConcern, summary, troubleOf, type Component } from "./health.logic";

const row = (name: string, state: Component["state"]): Component => ({ name, state, since: "2026-01-01T00:00:00Z", last_error: null, required: true });

test("what needs the owner comes first", () => {
  const rows = [row("timeline", "ok"), row("memory", "off"), row("computer", "failed"), row("egress", "degraded")];
  expect(inOrderOfConcern(rows).map((r) => r.name)).toEqual(["computer", "egress", "timeline", "memory"]);
});

test("the summary names what failed", () => {
  expect(summary({ ready: false, components: [row("computer", "failed")] })).toBe("Not well: computer");
  expect(summary({ ready: true, components: [row("computer", "ok")] })).toBe("Everything answers");
  expect(summary({ ready: false, components: [row("computer", "starting")] })).toBe("Starting");
});

test("trouble that is over is told as past", () => {
  expect(troubleOf({ ...row("computer", "ok"), last_error: "it was away" })).toBe("Earlier: it was away");
  expect(troubleOf({ ...row("computer", "failed"), last_error: "it is away" })).toBe("it is away");
  expect(troubleOf(row("computer", "ok"))).toBe("");
});
