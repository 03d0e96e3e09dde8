/** A longer text becomes a file when it is pasted. */
export const LARGE_PASTE = 20_000;

const IMAGES: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** Whether a file is sent as an image. Every other file is put into the workspace. */
export const isImage = (file: Pick<File, "type">): boolean => IMAGES.has(file.type);

const two = (number: number) => String(number).padStart(2, "0");

/** Where an attached file is put: a name of its own for each, and nothing that would end a name in the message. */
export function attachmentPath(name: string, now: Date, index: number): string {
  const day = `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`;
  const time = `${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}`;
  const safe = name.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[.-]+/, "") || "file";
  return `attachments/${day}-${time}${index === 0 ? "" : `-${index + 1}`}-${safe.slice(-80)}`;
}

/** The text with files named at its end. */
export function withFiles(text: string, paths: readonly string[]): string {
  const gap = text === "" || /\s$/.test(text) ? "" : " ";
  return paths.length === 0 ? text : `${text}${gap}${paths.map((path) => `@${path} `).join("")}`;
}
