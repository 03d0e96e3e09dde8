import type { PromptImage } from "../../../client/api";

export const MAX_IMAGES = 8;
/** Bytes of one image as it is sent. Larger images are scaled down first. */
export const MAX_IMAGE_BYTES = 4 * 1024 * 1024;
/** Bytes of all images of a prompt. The gateway accepts 16 MiB of text, and base64 makes four bytes of three. */
export const MAX_TOTAL_BYTES = 11 * 1024 * 1024;

/** The type of an image by its first bytes. Its name does not matter. */
export function imageTypeOf(head: Uint8Array): PromptImage["mime"] | null {
  const starts = (...bytes: number[]) => bytes.every((byte, at) => head[at] === byte);
  const word = (from: number, letters: string) =>
    [...letters].every((letter, at) => head[from + at] === letter.charCodeAt(0));
  if (starts(0x89, 0x50, 0x4e, 0x47)) return "image/png";
  if (starts(0xff, 0xd8, 0xff)) return "image/jpeg";
  if (word(0, "GIF8")) return "image/gif";
  if (word(0, "RIFF") && word(8, "WEBP")) return "image/webp";
  return null;
}

/** The size of an image whose longer side is at most `longest`. */
export function scaledSize(width: number, height: number, longest: number): { width: number; height: number } {
  const factor = Math.min(1, longest / Math.max(width, height));
  return { width: Math.max(1, Math.round(width * factor)), height: Math.max(1, Math.round(height * factor)) };
}

/** Why another image of `size` bytes cannot be added; null when it can. */
export function imageProblem(held: readonly { size: number }[], size: number): string | null {
  if (held.length >= MAX_IMAGES) return `A message can have at most ${MAX_IMAGES} images`;
  const all = held.reduce((sum, one) => sum + one.size, size);
  return all > MAX_TOTAL_BYTES
    ? `The images of a message can have at most ${Math.floor(MAX_TOTAL_BYTES / 1024 / 1024)} MB`
    : null;
}
