import { expect, test } from "vitest";
import { type Component, errorText, sortComponents, summary } from "./health.logic";

const row = (name: string, state: Component["state"]): Component => ({
  name,
  state,
  since: "2026-01-01T00:00:00Z",
  last_error: null,
  required: true,
});

test("components with problems come first", () => {
  const rows = [row("timeline", "ok"), row("memory", "off"), row("computer", "failed"), row("egress", "degraded")];
  expect(sortComponents(rows).map((r) => r.name)).toEqual(["computer", "egress", "timeline", "memory"]);
});

test("the summary names what failed", () => {
  expect(summary({ ready: false, components: [row("computer", "failed")] })).toBe("failed: computer");
  expect(summary({ ready: true, components: [row("computer", "ok")] })).toBe("all components work");
  expect(summary({ ready: false, components: [row("computer", "starting")] })).toBe("starting");
});

test("an error that is over is marked as earlier", () => {
  expect(errorText({ ...row("computer", "ok"), last_error: "it was away" })).toBe("Earlier: it was away");
  expect(errorText({ ...row("computer", "failed"), last_error: "it is away" })).toBe("it is away");
  expect(errorText(row("computer", "ok"))).toBe("");
});
