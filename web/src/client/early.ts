/** The first requests of the page. They are sent while the code that draws their replies is still loaded. */

import { requestEarly } from "./http";
import { readKey } from "./signInKey";

/** Who is signed in. Nothing is drawn before its reply. */
export const ME = "/v1/me";

export const SESSION_PAGE = 200;
/** The newest sessions. */
export const SESSIONS = `/v1/sessions?limit=${SESSION_PAGE}`;

export const AGENTS = "/v1/agents";
export const MODELS = "/v1/models";

export const EVENT_PAGE = 400;
/** The newest events of a session. */
export const sessionEvents = (id: string): string =>
  `/v1/sessions/${encodeURIComponent(id)}/events?limit=${EVENT_PAGE}`;

/** What the page at an address asks for before it can draw its main part. */
function firstRequests({ pathname, search }: Location): string[] {
  if (pathname !== "/" && pathname !== "/sessions") return [ME, SESSIONS];
  const session = new URLSearchParams(search).get("id");
  return [ME, ...(session === null ? [] : [sessionEvents(session)]), SESSIONS, AGENTS, MODELS];
}

export function askEarly(): void {
  if (readKey() === null || location.pathname === "/sign-in") return;
  for (const path of firstRequests(location)) requestEarly(path);
}
