import type { HistoryEntry, HistoryPage } from "../../../client/api";
import { hasKind, type ResourceHandle, useResource } from "../../../data/resource";

const LIMIT = 200;
const DELAY = 250;

/**
 * The newest history entries, kept up to date. Nothing is fetched while they are not `wanted`. The problem of a failed
 * request is not shown: what the owner does with an entry says so itself.
 */
export function useRecentEntries(wanted: boolean): ResourceHandle<readonly HistoryEntry[]> {
  return useResource<readonly HistoryEntry[]>(wanted ? `/v1/history?limit=${LIMIT}` : null, {
    topic: "timeline",
    durable: true,
    concerns: (event) => hasKind(event, "history."),
    read: (reply) => (reply as HistoryPage).entries,
    delay: DELAY,
    keep: (entries) => entries,
    isSecondary: true,
  });
}
