/** Characters that could hide what a command does, made visible. */
export function unhidden(words: string): string {
  return words.replace(/[\p{Cf}\p{Zl}\p{Zp}\u0000-\u0008\u000b-\u001f\u007f-\u009f]/gu, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`);
}
