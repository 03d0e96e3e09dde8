import { shorten } from "../../ui/format";
import { type SessionNews, sessionTitle } from "../session-list/sessionList.logic";

export interface Message {
  title: string;
  body: string;
  /** A later notification with the same tag replaces the earlier one. */
  tag: string;
}

const TITLES: Record<SessionNews["what"], string> = {
  needs_you: "An agent needs you",
  done: "An agent is done",
  failed: "An agent failed",
};
const MAX_BODY = 120;

/** The text of a notification. The title is ours. Of the session only its name is shown, made visible and shortened. */
export function messageOf({ session, what }: SessionNews): Message {
  const name = sessionTitle(session).replace(/\s+/g, " ");
  return { title: TITLES[what], body: shorten(name, MAX_BODY), tag: `session ${session.id}` };
}

export const NETWORK_MESSAGE: Message = {
  title: "A network request needs you",
  body: "A program in the computer wants to open a connection",
  tag: "network",
};

/** The title of the browser tab: the number of open requests and the name of the page. */
export function tabTitle(waiting: number, page: string | undefined): string {
  const title = page === undefined ? "Freehold" : `${page} · Freehold`;
  return waiting > 0 ? `(${waiting}) ${title}` : title;
}
