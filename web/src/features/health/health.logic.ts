import type { ComponentHealth, HealthReport } from "../../client/api";

/** One row of `GET /health`. */
export type Component = ComponentHealth;

export type Health = HealthReport;

const ORDER: Record<Component["state"], number> = { failed: 0, degraded: 1, starting: 2, ok: 3, off: 4 };

/** The components with problems first, then by name. */
export function sortComponents(components: readonly Component[]): Component[] {
  return [...components].sort((a, b) => ORDER[a.state] - ORDER[b.state] || a.name.localeCompare(b.name));
}

export function summary(health: Health): string {
  const failed = health.components.filter((c) => c.state === "failed").map((c) => c.name);
  if (failed.length > 0) return `failed: ${failed.join(", ")}`;
  return health.ready ? "all components work" : "starting";
}

/** The last error of a component. When it works again, the error is marked as an earlier one. */
export function errorText(component: Component): string {
  const error = component.last_error ?? "";
  return component.state === "ok" && error ? `Earlier: ${error}` : error;
}
