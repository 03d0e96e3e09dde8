import type { Image } from "../../../client/api";

export const MOST_IMAGES = 8;
/** Of one image, as it is sent; larger ones are made smaller first. */
export const LARGEST = 4 * 1024 * 1024;
/** Of all of one prompt: the gateway takes 16 MiB of text, and base64 makes four bytes of three. */
export const MOST_BYTES = 11 * 1024 * 1024;

/** What an image is by its first bytes, whatever it is called. */
export function kindOf(head: Uint8Array): Image["mime"] | null {
  const starts = (...bytes: number[]) => bytes.every((byte, at) => head[at] === byte);
  const word = (from: number, letters: string) => [...letters].every((letter, at) => head[from + at] === letter.charCodeAt(0));
  if (starts(0x89, 0x50, 0x4e, 0x47)) return "image/png";
  if (starts(0xff, 0xd8, 0xff)) return "image/jpeg";
  if (word(0, "GIF8")) return "image/gif";
  if (word(0, "RIFF") && word(8, "WEBP")) return "image/webp";
  return null;
}

/** The longer side of a picture after it was made smaller, and the other one with it. */
export function fitted(width: number, height: number, longest: number): { width: number; height: number } {
  const factor = Math.min(1, longest / Math.max(width, height));
  return { width: Math.max(1, Math.round(width * factor)), height: Math.max(1, Math.round(height * factor)) };
}

/** Why no more can be taken; null when it can. */
export function refusal(held: readonly { size: number }[], size: number): string | null {
  if (held.length >= MOST_IMAGES) return `A prompt takes ${MOST_IMAGES} images`;
  const all = held.reduce((sum, one) => sum + one.size, size);
  return all > MOST_BYTES ? `The images of a prompt come to at most ${Math.floor(MOST_BYTES / 1024 / 1024)} MB` : null;
}
