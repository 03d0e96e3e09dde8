import type { ComponentRow, HealthReport } from "../../client/api";

/** One row of `GET /health`. */
export type Component = ComponentRow;

export type Health = HealthReport;

const ORDER: Record<Component["state"], number> = { failed: 0, degraded: 1, starting: 2, ok: 3, off: 4 };

/** Trouble first, then by name: what needs the owner is at the top. */
export function inOrderOfConcern(components: readonly Component[]): Component[] {
  return [...components].sort((a, b) => ORDER[a.state] - ORDER[b.state] || a.name.localeCompare(b.name));
}

export function summary(health: Health): string {
  const failed = health.components.filter((c) => c.state === "failed").map((c) => c.name);
  if (failed.length > 0) return `Not well: ${failed.join(", ")}`;
  return health.ready ? "Everything answers" : "Starting";
}

/** What went wrong, said as past when it is. */
export function troubleOf(component: Component): string {
  const trouble = component.last_error ?? "";
  return component.state === "ok" && trouble ? `Earlier: ${trouble}` : trouble;
}
