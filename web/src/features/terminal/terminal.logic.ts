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

const CONTROLLED = /^[a-z@[\\\]^_ ]$/i;

/** What a key means while Ctrl is held on a keyboard that has none. */
export function withControl(text: string): string {
  return CONTROLLED.test(text) ? String.fromCharCode(text.toUpperCase().charCodeAt(0) & 0x1f) : text;
}

export type SoftKey = "Esc" | "Tab" | "←" | "↓" | "↑" | "→";

const ARROWS: Partial<Record<SoftKey, string>> = { "↑": "A", "↓": "B", "→": "C", "←": "D" };

/** What a key of the row below a phone's terminal sends; programs that ask for it get arrows of their own kind. */
export function bytesOf(key: SoftKey, applicationArrows: boolean): string {
  if (key === "Esc") return "\x1b";
  if (key === "Tab") return "\t";
  return `\x1b${applicationArrows ? "O" : "["}${ARROWS[key] ?? ""}`;
}

export interface TerminalKey {
  type: string;
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  shiftKey: boolean;
  altKey: boolean;
}

/**
 * What a key asks of us instead of the program inside. Ctrl-F is the program's while one has the whole screen (an editor,
 * a pager), Ctrl-C always; with Shift both are ours.
 */
export function readTerminalKey(event: TerminalKey, wholeScreen: boolean): "find" | "copy" | "paste" | null {
  if (event.type !== "keydown" || event.altKey) return null;
  const key = event.key.toLowerCase();
  if (event.ctrlKey && !event.metaKey) {
    if (key === "f" && (event.shiftKey || !wholeScreen)) return "find";
    if (event.shiftKey && key === "c") return "copy";
    if (event.shiftKey && key === "v") return "paste";
    if (key === "insert") return "copy";
  }
  if (event.shiftKey && !event.ctrlKey && key === "insert") return "paste";
  if (event.metaKey && !event.ctrlKey && key === "f") return "find";
  return null;
}

const NAMES = "freehold.terminal.names";
const LONGEST_NAME = 40;

/** The names the owner gave to terminals; those of terminals that are gone are forgotten when another is given. */
export function readNames(store: Pick<Storage, "getItem"> = localStorage): Record<string, string> {
  try {
    const found: unknown = JSON.parse(store.getItem(NAMES) ?? "{}");
    return Object.fromEntries(Object.entries(found ?? {}).filter((pair): pair is [string, string] => typeof pair[1] === "string"));
  } catch {
    return {};
  }
}

export function nameTerminal(id: string, name: string, alive: readonly string[], store: Pick<Storage, "getItem" | "setItem"> = localStorage): Record<string, string> {
  const names = Object.fromEntries(Object.entries(readNames(store)).filter(([one]) => alive.includes(one) && one !== id));
  const said = name.trim().slice(0, LONGEST_NAME);
  if (said !== "") names[id] = said;
  store.setItem(NAMES, JSON.stringify(names));
  return names;
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
