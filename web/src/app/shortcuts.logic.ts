export interface PressedKey {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  /** Whether keys belong to the element that has the focus. */
  typing: boolean;
}

export type Shortcut =
  | { action: "palette" }
  | { action: "shortcuts" }
  | { action: "page"; key: string }
  | { action: "prefix" }
  | null;

/** What a key does. `isAfterPrefix`: `g` was pressed just before. */
export function shortcutOf(pressed: PressedKey, isAfterPrefix: boolean): Shortcut {
  const hasModifier = pressed.ctrlKey || pressed.metaKey;
  if (hasModifier && !pressed.altKey && pressed.key.toLowerCase() === "k") return { action: "palette" };
  if (pressed.typing || hasModifier || pressed.altKey) return null;
  if (isAfterPrefix) return { action: "page", key: pressed.key.toLowerCase() };
  if (pressed.key === "?") return { action: "shortcuts" };
  if (pressed.key === "g") return { action: "prefix" };
  return null;
}
