// The same characters as `agents/visible_text.py`, so that a hidden character looks the same everywhere.
const HIDDEN =
  /(?![\n\t ])(?:[\p{C}\p{Z}\u115f\u1160\u2800\u3164\uffa0]|[\ufe00-\ufe0f]|[\u{e0100}-\u{e01ef}]|\u034f|\u17b4|\u17b5)/gu;

/** Marks above one letter. More of them cover the lines around it, and take a browser long to draw. */
const MARKS = /(\p{M}{16})(\p{M}+)/gu;

const spelled = (char: string): string =>
  `⟨U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;

/** The text with every character that hides, reorders or imitates others spelled out. Line breaks and tabs stay. */
export function visibleText(text: string): string {
  return text
    .replace(HIDDEN, spelled)
    .replace(MARKS, (_, kept: string, more: string) => kept + [...more].map(spelled).join(""));
}
