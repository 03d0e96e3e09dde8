import { splitBlocks } from "../markdown/blocks.logic";
import { isTooComplex } from "../markdown/limits.logic";

export const MAX_EDITED = 2 * 1024 * 1024;
/** Larger files are not fetched. */
export const MAX_SHOWN = 48 * 1024 * 1024;

export type Content =
  | { kind: "text"; text: string }
  | { kind: "long-lines"; text: string }
  | { kind: "image"; mime: string }
  | { kind: "pdf" }
  | { kind: "binary" }
  | { kind: "large" };

// Only types that cannot contain script. An SVG or HTML file is shown as text.
const IMAGES: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  avif: "image/avif",
};

function extensionOf(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const at = name.lastIndexOf(".");
  return at <= 0 ? "" : name.slice(at + 1).toLowerCase();
}

export function imageType(path: string): string | null {
  return IMAGES[extensionOf(path)] ?? null;
}

export function readContent(path: string, bytes: Uint8Array): Content {
  const mime = imageType(path);
  if (mime !== null) return { kind: "image", mime };
  if (extensionOf(path) === "pdf" && new TextDecoder("latin1").decode(bytes.subarray(0, 1024)).includes("%PDF-"))
    return { kind: "pdf" };
  if (bytes.length > MAX_EDITED) return { kind: "large" };
  if (bytes.subarray(0, 8000).includes(0)) return { kind: "binary" };
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return { kind: hasLongLine(text) ? "long-lines" : "text", text };
  } catch {
    return { kind: "binary" };
  }
}

/** The editor lays out a line as a whole. Longer ones would keep the page from answering. */
const MAX_LINE = 5_000;

/** Whether a text has a line that is too long for the editor. */
export function hasLongLine(text: string): boolean {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf("\n", at);
    if ((end < 0 ? text.length : end) - at > MAX_LINE) return true;
    at = end < 0 ? text.length : end + 1;
  }
  return false;
}

export type Language = "javascript" | "typescript" | "python" | "json" | "markdown" | "css" | "html";

const LANGUAGES: Record<string, Language> = {
  js: "javascript",
  mjs: "javascript",
  cjs: "javascript",
  jsx: "javascript",
  ts: "typescript",
  tsx: "typescript",
  py: "python",
  json: "json",
  md: "markdown",
  css: "css",
  html: "html",
  htm: "html",
  svg: "html",
  xml: "html",
};

/** Longer texts are not highlighted. */
const MAX_HIGHLIGHTED = 500_000;

/** The language of a text for highlighting; null when it has none, or when the text takes its parser too long. */
export function languageOf(path: string, text: string): Language | null {
  const language = LANGUAGES[extensionOf(path)] ?? null;
  if (language === null || text.length > MAX_HIGHLIGHTED) return null;
  return language === "markdown" && splitBlocks(text).some(isTooComplex) ? null : language;
}

/** What to do when the open file changed on disk. */
export function reactionToChange(opened: string, now: string, dirty: boolean): "nothing" | "reload" | "conflict" {
  if (opened === now) return "nothing";
  return dirty ? "conflict" : "reload";
}
