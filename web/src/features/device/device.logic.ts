import type { WaitingDevice } from "../../client/api";

export type { WaitingDevice };

const MEANING: Record<string, string> = {
  read: "see everything that happens",
  prompt: "give your agents work",
  files: "read and change your files",
  terminal: "run commands in the computer",
  history: "undo and restore",
  admin: "change settings, sessions and tokens",
};

export function meaningOf(scope: string): string {
  return MEANING[scope] ?? scope;
}

/** The code as the server writes it, whatever spaces, dashes or case it was typed with; null when it cannot be one. */
export function codeFrom(text: string): string | null {
  const letters = text.replace(/[^A-Za-z]/g, "").toUpperCase();
  return letters.length === 8 ? `${letters.slice(0, 4)}-${letters.slice(4)}` : null;
}
