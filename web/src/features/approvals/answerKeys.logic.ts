export interface PressedKey {
  key: string;
  code: string;
  altKey: boolean;
  ctrlKey: boolean;
  metaKey: boolean;
  shiftKey: boolean;
  /** Whether keys belong to the element that has the focus. */
  typing: boolean;
}

/** Milliseconds that a request is visible before a key or a click can answer it, so that it is not answered by accident. */
export const MIN_VISIBLE = 600;

/** `page`: number keys answer while nothing is typed; `alt`: only together with Alt. */
export type KeyMode = "page" | "alt" | "none";

/** With a session on the screen, keys answer only the requests in its dock. */
export function keyModeOf(place: "dock" | "bar", hasOpenSession: boolean): KeyMode {
  if (place === "dock") return "page";
  return hasOpenSession ? "none" : "alt";
}

/** Whether a request that is visible since `since` (null: hidden) was visible long enough when a key was pressed. */
export const wasSeen = (since: number | null, pressedAt: number): boolean =>
  since !== null && pressedAt - since >= MIN_VISIBLE;

/** Which of `count` answers a key chooses: its number, and with Alt also while something is typed. Null for none. */
export function answerIndexOf(pressed: PressedKey, count: number): number | null {
  if (pressed.ctrlKey || pressed.metaKey || pressed.shiftKey || (pressed.typing && !pressed.altKey)) return null;
  const number =
    /^(?:Digit|Numpad)([1-9])$/.exec(pressed.code)?.[1] ?? (/^[1-9]$/.test(pressed.key) ? pressed.key : undefined);
  return number !== undefined && Number(number) <= count ? Number(number) - 1 : null;
}
