import type { SessionView } from "../../client/api";

const latestFirst = (a: SessionView, b: SessionView) => (a.updated === b.updated ? (a.id < b.id ? 1 : -1) : a.updated < b.updated ? 1 : -1);

/** The sessions after one was told of: changed, put away or gone. Telling it twice, or late, changes nothing. */
export function withSession(rows: readonly SessionView[], told: unknown): readonly SessionView[] {
  const row = told as SessionView & { deleted?: boolean };
  if (rows.some((one) => one.id === row.id && one.seq > row.seq)) return rows;
  const others = rows.filter((one) => one.id !== row.id);
  return row.deleted === true || row.archived ? others : [...others, row].sort(latestFirst);
}

export interface News {
  session: SessionView;
  what: "done" | "failed" | "needs_you";
}

const UNDER_WAY = new Set<SessionView["status"]>(["working", "queued", "needs_you"]);

/** What became of the sessions between two looks that is worth calling the owner for. */
export function newsBetween(before: readonly SessionView[], after: readonly SessionView[]): News[] {
  const known = new Map(before.map((row) => [row.id, row.status]));
  return after.flatMap((session): News[] => {
    const was = known.get(session.id);
    if (was === session.status) return [];
    if (session.status === "needs_you") return [{ session, what: "needs_you" }];
    if (was === undefined || !UNDER_WAY.has(was)) return [];
    if (session.status === "failed") return [{ session, what: "failed" }];
    return session.status === "idle" ? [{ session, what: "done" }] : [];
  });
}

/** How a session stands, in a word; nothing when there is nothing to say. */
export function standing(session: SessionView): { words: string; tone: "leaf" | "amber" | "alarm" | "" } | null {
  switch (session.status) {
    case "working":
      return { words: "working", tone: "leaf" };
    case "needs_you":
      return { words: "needs you", tone: "amber" };
    case "failed":
      return { words: "failed", tone: "alarm" };
    case "queued":
      return { words: "queued", tone: "" };
    case "idle":
      return session.unread ? { words: "done", tone: "" } : null;
  }
}
