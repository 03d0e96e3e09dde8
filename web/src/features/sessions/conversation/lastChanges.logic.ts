import type { SessionEvent } from "../../../client/api";
import { diffPath } from "../../diff/diff.logic";

/** The address of the changes of the last turn that changed files; of the last change at all when none did. */
export function lastChangesPath(events: readonly SessionEvent[]): string {
  const turn = events.findLast((event) => event.kind === "turn.ended" && pointsOf(event) !== null);
  return diffPath((turn === undefined ? null : pointsOf(turn)) ?? { old: "before", new: "now" });
}

/** The states before and after a turn; null when it changed no file. */
function pointsOf(event: SessionEvent): { old: string; new: string } | null {
  const changes = (event.data["changes"] ?? {}) as Record<string, unknown>;
  const { before, entry } = changes;
  if (typeof before !== "number" || typeof entry !== "number" || entry <= before) return null;
  const hasChanged = ["added", "changed", "removed"].some((name) => Number(changes[name] ?? 0) > 0);
  return hasChanged ? { old: String(before), new: String(entry) } : null;
}
