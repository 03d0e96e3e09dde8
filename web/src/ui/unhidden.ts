// As `agents/visible.py` says it: what is hidden has one spelling everywhere.
const HIDDEN = /(?![\n\t ])[\p{C}\p{Z}\ufe00-\ufe0f\u{e0100}-\u{e01ef}\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5]/gu;

/** Characters that hide, reorder or imitate, spelled out: what is shown is what is there. Lines and tabs stay. */
export function unhidden(words: string): string {
  return words.replace(HIDDEN, (char) => `⟨U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}
