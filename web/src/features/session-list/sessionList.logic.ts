import type { SessionInfo } from "../../client/api";
import { shorten } from "../../ui/format";
import { visibleText } from "../../ui/visibleText";
import { wordOf } from "../../ui/words";

const MAX_TITLE = 200;

/** The title of a session as it is shown. */
export const sessionTitle = (session: Pick<SessionInfo, "title"> | null): string =>
  visibleText(shorten(session?.title ?? "", MAX_TITLE)) || "New session";

/** The title that a session has until its first prompt or until the owner gives it one. */
const NO_TITLE = "New session";

/** Whether nothing was said in a session yet, and the owner has given it no name. */
export const isUnused = (session: Pick<SessionInfo, "seq" | "title" | "status">): boolean =>
  session.seq === 0 && session.title === NO_TITLE && session.status === "idle";

const byLastChange = (a: SessionInfo, b: SessionInfo) =>
  a.updated === b.updated ? (a.id < b.id ? 1 : -1) : a.updated < b.updated ? 1 : -1;

/** The list after a session was changed, archived or deleted. An event that is repeated or late changes nothing. */
export function withSession(rows: readonly SessionInfo[], event: unknown): readonly SessionInfo[] {
  const row = event as SessionInfo & { deleted?: boolean };
  if (rows.some((one) => one.id === row.id && one.seq > row.seq)) return rows;
  const others = rows.filter((one) => one.id !== row.id);
  return row.deleted === true || row.archived ? others : [...others, row].sort(byLastChange);
}

/** The newest sessions, and those of older pages that are not among them. */
export function withOlder(newest: readonly SessionInfo[], older: readonly SessionInfo[]): readonly SessionInfo[] {
  if (older.length === 0) return newest;
  const known = new Set(newest.map((one) => one.id));
  return [...newest, ...older.filter((one) => !known.has(one.id))];
}

/** The session after or before one in the list; null at its ends. */
export function neighbourOf(rows: readonly SessionInfo[], id: string | null, step: 1 | -1): SessionInfo | null {
  const at = rows.findIndex((one) => one.id === id);
  return at < 0 ? null : (rows[at + step] ?? null);
}

export interface SessionNews {
  session: SessionInfo;
  what: "done" | "failed" | "needs_you";
}

const ACTIVE = new Set<SessionInfo["status"]>(["working", "queued", "needs_you"]);

/** Whether the agent of the session works or has work waiting. */
export const isBusy = (session: Pick<SessionInfo, "status"> | null): boolean =>
  session !== null && ACTIVE.has(session.status);

/** The changes between two states of the list that the owner is notified about. */
export function sessionNews(before: readonly SessionInfo[], after: readonly SessionInfo[]): SessionNews[] {
  const statuses = new Map(before.map((row) => [row.id, row.status]));
  return after.flatMap((session): SessionNews[] => {
    const previous = statuses.get(session.id);
    if (previous === session.status) return [];
    if (session.status === "needs_you") return [{ session, what: "needs_you" }];
    if (previous === undefined || !ACTIVE.has(previous)) return [];
    if (session.status === "failed") return [{ session, what: "failed" }];
    return session.status === "idle" ? [{ session, what: "done" }] : [];
  });
}

/** The status of a session in a word or two; null when there is nothing to say. */
export function statusLabel(session: SessionInfo): { text: string; tone: "leaf" | "amber" | "alarm" | "" } | null {
  switch (session.status) {
    case "working":
      return { text: wordOf("working"), tone: "leaf" };
    case "needs_you":
      return { text: wordOf("needs_you"), tone: "amber" };
    case "failed":
      return { text: wordOf("failed"), tone: "alarm" };
    case "queued":
      return { text: wordOf("queued"), tone: "" };
    case "idle":
      return session.unread ? { text: wordOf("done"), tone: "" } : null;
  }
}
