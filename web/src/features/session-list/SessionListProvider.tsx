import { createContext, type ReactNode, useContext } from "react";
import type { SessionInfo, SessionPage } from "../../client/api";
import { SESSIONS } from "../../client/early";
import { type ResourceHandle, useResource } from "../../data/resource";
import { withSession } from "./sessionList.logic";

const SessionListContext = createContext<ResourceHandle<readonly SessionInfo[]> | null>(null);

/** The newest sessions that are not archived, last changed first, kept up to date. */
export function useSessionList(): ResourceHandle<readonly SessionInfo[]> {
  const sessionList = useContext(SessionListContext);
  if (sessionList === null) throw new Error("useSessionList needs a SessionListProvider");
  return sessionList;
}

/** One session of the list; null while it is not known. */
export function useListedSession(id: string | null): SessionInfo | null {
  const { value } = useSessionList();
  return value?.find((session) => session.id === id) ?? null;
}

export function SessionListProvider({ children }: { children: ReactNode }) {
  const sessionList = useResource<readonly SessionInfo[]>(SESSIONS, {
    topic: "sessions",
    read: (reply) => (reply as SessionPage).sessions,
    apply: withSession,
  });
  return <SessionListContext.Provider value={sessionList}>{children}</SessionListContext.Provider>;
}
