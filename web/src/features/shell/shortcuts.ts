/** Keys of the control center. A page that is typed into keeps its keys. */

export interface Pressed {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  typing: boolean;
}

export type Act = { do: "palette" } | { do: "help" } | { do: "go"; key: string } | { do: "wait" } | null;

/** What a key means, after `g` or not. */
export function readKey(pressed: Pressed, afterG: boolean): Act {
  if ((pressed.ctrlKey || pressed.metaKey) && !pressed.altKey && pressed.key.toLowerCase() === "k") return { do: "palette" };
  if (pressed.typing || pressed.ctrlKey || pressed.metaKey || pressed.altKey) return null;
  if (afterG) return { do: "go", key: pressed.key.toLowerCase() };
  if (pressed.key === "?") return { do: "help" };
  if (pressed.key === "g") return { do: "wait" };
  return null;
}

/** Whether keys belong to what has the focus: fields, the editor, a terminal. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.closest("input, textarea, select, [data-keys]") !== null;
}
