import { useEffect, useRef } from "react";
import type { SessionInfo, SessionPage } from "../../../client/api";
import { SESSION_PAGE } from "../../../client/early";
import type { Problem } from "../../../client/http";
import { useResource } from "../../../data/resource";

export interface SessionSearch {
  /** Whether there is something to search for. */
  active: boolean;
  sessions: readonly SessionInfo[] | null;
  problem: Problem | null;
  reload: () => void;
}

/** The sessions that match a query, or the archived ones. The last result stays while the next one is fetched. */
export function useSessionSearch(query: string, archived: boolean): SessionSearch {
  const active = query !== "" || archived;
  const path = `/v1/sessions?limit=${SESSION_PAGE}&archived=${archived}&query=${encodeURIComponent(query)}`;
  const { value, problem, reload } = useResource<SessionPage>(active ? path : null, { topic: "sessions" });
  const last = useRef<readonly SessionInfo[] | null>(null);
  useEffect(() => {
    last.current = active ? (value?.sessions ?? last.current) : null;
  });
  return { active, sessions: value?.sessions ?? last.current, problem, reload };
}
