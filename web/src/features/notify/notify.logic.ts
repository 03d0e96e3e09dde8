import type { News } from "../sessions/roster.logic";
import { unhidden } from "../../ui/unhidden";

export interface Words {
  title: string;
  body: string;
  /** A later word about the same session takes the place of the one before. */
  tag: string;
}

const TITLES: Record<News["what"], string> = { needs_you: "An agent needs you", done: "An agent is done", failed: "An agent could not go on" };
const LONGEST = 120;

/** What a notification says. The title is ours; of the session only its name is told, in full view and with an end. */
export function wordsOf({ session, what }: News): Words {
  const name = unhidden(session.title || "New session").replace(/\s+/g, " ");
  return { title: TITLES[what], body: name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name, tag: `session ${session.id}` };
}

/** The title of the page: how much waits, where one is, and whose house it is. */
export function pageTitle(waiting: number, place: string | undefined): string {
  const where = place === undefined ? "Freehold" : `${place} · Freehold`;
  return waiting > 0 ? `(${waiting}) ${where}` : where;
}
