import { createContext, useContext, type ReactNode } from "react";
import type { SessionPage, SessionView } from "../../client/api";
import { useLiveRows, type LiveRows } from "../shell/rows";
import { withSession } from "./roster.logic";

const Context = createContext<LiveRows<SessionView> | null>(null);

/** The sessions that are not archived, the last changed first, live. */
export function useRoster(): LiveRows<SessionView> {
  const roster = useContext(Context);
  if (roster === null) throw new Error("no RosterProvider above");
  return roster;
}

const read = (answer: unknown) => (answer as SessionPage).sessions;

export function RosterProvider({ children }: { children: ReactNode }) {
  const roster = useLiveRows<SessionView>("/v1/sessions?limit=200", "sessions", read, withSession);
  return <Context.Provider value={roster}>{children}</Context.Provider>;
}
