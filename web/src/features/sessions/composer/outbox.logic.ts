import type { Image, SendPrompt } from "../../../client/api";

/** A prompt on its way. Its key stays the same however often it is tried: it becomes one turn, or none. */
export interface Letter {
  key: string;
  text: string;
  files: string[];
  images: Image[];
  when: NonNullable<SendPrompt["when"]>;
}

export const bodyOf = ({ key, text, files, images, when }: Letter): SendPrompt => ({ key, text, files, images: images.map(({ mime, data }) => ({ mime, data })), when });

/** Whether nobody said no: the gateway was away, or was not ready, and may even have taken it. */
export const isUncertain = (status: number): boolean => status === 0 || status === 502 || status === 503 || status === 504;

const MOST_KEPT = 2_000_000;

/** What is written down of those on their way: all of them, or of pictures too large to keep, nothing. */
export function kept(letters: readonly Letter[]): string | null {
  if (letters.length === 0) return null;
  const text = JSON.stringify(letters);
  return text.length <= MOST_KEPT ? text : JSON.stringify(letters.filter((letter) => letter.images.length === 0));
}

export function readKept(text: string | null): Letter[] {
  try {
    const found: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(found) ? found.filter((one): one is Letter => typeof one?.key === "string" && typeof one.text === "string" && Array.isArray(one.files) && Array.isArray(one.images)) : [];
  } catch {
    return [];
  }
}

/** The key of a prompt that was taken back and is sent again unchanged is the same: it may have arrived the first time. */
export function keyFor(letter: Omit<Letter, "key" | "when">, before: Letter | null, fresh: () => string): string {
  const same = before !== null && before.text === letter.text && JSON.stringify(before.files) === JSON.stringify(letter.files) && JSON.stringify(before.images.map((one) => one.data)) === JSON.stringify(letter.images.map((one) => one.data));
  return same ? before.key : fresh();
}
