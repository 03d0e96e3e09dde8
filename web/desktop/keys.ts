const BACKSPACE = 0xff08;
const RETURN = 0xff0d;

/** The keys, as X names them, for what the keyboard of a phone did. Nothing for what has no key. */
export function keysFor(inputType: string, text: string | null): number[] {
  switch (inputType) {
    case "insertText":
    case "insertCompositionText":
    case "insertFromPaste":
      return [...(text ?? "")].map(keyOf);
    case "insertLineBreak":
    case "insertParagraph":
      return [RETURN];
    case "deleteContentBackward":
      return [BACKSPACE];
    default:
      return [];
  }
}

function keyOf(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (character === "\n") return RETURN;
  return code < 0x100 ? code : 0x0100_0000 + code;
}
