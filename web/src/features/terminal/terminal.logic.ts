import type { TerminalInfo } from "../../client/api";

/** The address of a web link; null for other links. */
export function safeLink(text: string): string | null {
  try {
    const address = new URL(text);
    return address.protocol === "http:" || address.protocol === "https:" ? address.href : null;
  } catch {
    return null;
  }
}

const MAX_TITLE = 24;
/** Hidden characters are removed from so many. */
const MAX_READ_TITLE = 200;

/** A title that a program set, shortened and without invisible characters. */
export function plainTitle(title: string): string {
  const shown = [...title.slice(0, MAX_READ_TITLE)]
    .filter((char) => !/[\p{C}\p{Zl}\p{Zp}]/u.test(char))
    .join("")
    .trim();
  return shown.length > MAX_TITLE ? `${shown.slice(0, MAX_TITLE)}…` : shown;
}

const CONTROL_KEYS = /^[a-z@[\\\]^_ ]$/i;

/** The character of a key together with Ctrl. */
export function withControl(text: string): string {
  return CONTROL_KEYS.test(text) ? String.fromCharCode(text.toUpperCase().charCodeAt(0) & 0x1f) : text;
}

export type SoftKey = "Esc" | "Tab" | "←" | "↓" | "↑" | "→";

const ARROWS: Partial<Record<SoftKey, string>> = { "↑": "A", "↓": "B", "→": "C", "←": "D" };

/** What a key of the row below the terminal sends. */
export function softKeyBytes(key: SoftKey, applicationArrows: boolean): string {
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
 * What the page does for a key; null when the key belongs to the program. Ctrl-F belongs to a program that uses the
 * whole screen, such as an editor, and Ctrl-C always. With Shift both belong to the page.
 */
export function terminalKeyAction(event: TerminalKey, wholeScreen: boolean): "find" | "copy" | "paste" | null {
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
const MAX_NAME = 40;

/** The names that the owner gave to terminals. Names of closed terminals are removed by `nameTerminal`. */
export function readNames(store: Pick<Storage, "getItem"> = localStorage): Record<string, string> {
  try {
    const found: unknown = JSON.parse(store.getItem(NAMES) ?? "{}");
    return Object.fromEntries(
      Object.entries(found ?? {}).filter((pair): pair is [string, string] => typeof pair[1] === "string"),
    );
  } catch {
    return {};
  }
}

export function nameTerminal(
  id: string,
  name: string,
  open: readonly string[],
  store: Pick<Storage, "getItem" | "setItem"> = localStorage,
): Record<string, string> {
  const names = Object.fromEntries(
    Object.entries(readNames(store)).filter(([one]) => open.includes(one) && one !== id),
  );
  const given = name.trim().slice(0, MAX_NAME);
  if (given !== "") names[id] = given;
  store.setItem(NAMES, JSON.stringify(names));
  return names;
}

/** The terminal to show: the wanted one while it is open, or the newest. */
export function chooseTerminal(rows: readonly TerminalInfo[], wanted: string | null): string | null {
  if (rows.some((row) => row.id === wanted)) return wanted;
  return rows.at(-1)?.id ?? null;
}

const ENDED = 4410;
const GONE = 4404;
const SIGNED_OUT = 4401;

/** Whether to connect again after the socket of a terminal was closed. */
export function canReconnect(code: number): boolean {
  return code !== ENDED && code !== GONE && code !== SIGNED_OUT;
}

const OPENED = "freehold.terminal.opened";

/** Notes that a terminal is on the screen. The note stays when the page is cut off, and is removed when it is left. */
export function noteOpened(id: string | null, store: Pick<Storage, "setItem" | "removeItem"> = sessionStorage): void {
  if (id === null) store.removeItem(OPENED);
  else store.setItem(OPENED, id);
}

/** The terminal that was on the screen when this page was cut off; null when it was left in the usual way. */
export const readOpened = (store: Pick<Storage, "getItem"> = sessionStorage): string | null => store.getItem(OPENED);
