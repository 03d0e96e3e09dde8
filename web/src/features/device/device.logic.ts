import type { WaitingDevice } from "../../client/api";

export type { WaitingDevice };

const SCOPES: Record<string, string> = {
  read: "see everything that happens",
  prompt: "send prompts to your agents",
  files: "read and change your files",
  terminal: "run commands in the computer",
  history: "undo and restore",
  admin: "change settings, sign-ins and API tokens",
};

export function scopeText(scope: string): string {
  return SCOPES[scope] ?? scope;
}

/** The code as the server writes it, without regard to spaces, dashes and case; null when it is not a code. */
export function parseCode(text: string): string | null {
  const letters = text.replace(/[^A-Za-z]/g, "").toUpperCase();
  return letters.length === 8 ? `${letters.slice(0, 4)}-${letters.slice(4)}` : null;
}
