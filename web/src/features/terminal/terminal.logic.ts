import type { TerminalRow } from "../../client/api";

/** The address a link in a terminal may open; null for everything that is not the web. */
export function safeLink(text: string): string | null {
  try {
    const address = new URL(text);
    return address.protocol === "http:" || address.protocol === "https:" ? address.href : null;
  } catch {
    return null;
  }
}

const LONGEST = 24;

/** A title as a program inside set it: short, and without anything that is not plainly visible. */
export function plainTitle(title: string): string {
  const shown = [...title].filter((char) => !/[\p{C}\p{Zl}\p{Zp}]/u.test(char)).join("").trim();
  return shown.length > LONGEST ? `${shown.slice(0, LONGEST)}…` : shown;
}

/** Which terminal is shown: the one wanted while it lives, else the newest. */
export function chooseTerminal(rows: readonly TerminalRow[], wanted: string | null): string | null {
  if (rows.some((row) => row.id === wanted)) return wanted;
  return rows.at(-1)?.id ?? null;
}

export const ENDED = 4410;
export const GONE = 4404;
export const SIGNED_OUT = 4401;

/** Whether a terminal whose socket closed is worth connecting to again. */
export function comesBack(code: number): boolean {
  return code !== ENDED && code !== GONE && code !== SIGNED_OUT;
}
