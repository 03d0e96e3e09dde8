import type { SessionEvent } from "../../client/api";

export interface PendingApproval {
  id: string;
  title: string;
  details: [name: string, value: string][];
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** What a session's agent asks and nobody has answered, the oldest first. */
export function pendingApprovals(events: readonly SessionEvent[]): PendingApproval[] {
  const open = new Map<string, PendingApproval>();
  for (const { kind, data } of events) {
    if (kind !== "approval") continue;
    const id = text(data["id"]);
    const details = typeof data["details"] === "object" && data["details"] !== null ? data["details"] : {};
    if (data["state"] !== "pending") open.delete(id);
    else
      open.set(id, {
        id,
        title: text(data["title"]),
        details: Object.entries(details).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value, null, 2)]),
      });
  }
  return [...open.values()];
}
