import type { PreviewPort } from "../../client/api";

export type Width = "phone" | "tablet" | "full";

/** The widths in which a page can be shown, in pixels; null for all of the space. */
export const WIDTHS: readonly { width: Width; label: string; pixels: number | null }[] = [
  { width: "phone", label: "Phone", pixels: 390 },
  { width: "tablet", label: "Tablet", pixels: 820 },
  { width: "full", label: "Full width", pixels: null },
];

export function pixelsOf(width: Width): number | null {
  return WIDTHS.find((one) => one.width === width)?.pixels ?? null;
}

const MIN_PORT = 1024;
const MAX_PORT = 65535;

/** A port from the address; null when it cannot have a preview. */
export function readPort(text: string | null): number | null {
  if (text === null || !/^[1-9]\d{3,4}$/.test(text)) return null;
  const port = Number(text);
  return port >= MIN_PORT && port <= MAX_PORT ? port : null;
}

/** The port to show: the wanted one, or the first service, or the first port. */
export function choosePort(ports: readonly PreviewPort[], wanted: number | null): number | null {
  return wanted ?? ports.find((one) => one.service !== null)?.port ?? ports[0]?.port ?? null;
}

/** The name of the service or the program that listens on a port. */
export function nameOf(port: PreviewPort): string {
  return port.service ?? port.process ?? "";
}

const MAX_PATH = 2_000;

/** A path that the owner typed, or a whole address of the preview; null when it leads elsewhere. */
export function readPath(typed: string, origin: string): string | null {
  const text = typed.trim();
  const whole = /^[a-z][a-z0-9+.-]*:/i.test(text) ? text : text.startsWith("/") ? origin + text : `${origin}/${text}`;
  let address: URL;
  try {
    address = new URL(whole);
  } catch {
    return null;
  }
  const path = address.pathname + address.search + address.hash;
  if (address.origin !== origin || path.startsWith("//") || path.includes("\\") || path.length > MAX_PATH) return null;
  return path;
}

/** The scale at which the whole width of a page is visible. */
export function scaleFor(pixels: number | null, space: number): number {
  return pixels === null || space <= 0 || space >= pixels ? 1 : space / pixels;
}

const UNWATCHED = /(?:^|\/)(?:node_modules|\.git|\.venv|__pycache__|\.cache)(?:\/|$)/;

/** Whether an event of the topic `files` is about a file of the workspace that a page may show. */
export function hasChangedFile(event: unknown): boolean {
  const { items, relist } = event as { items?: { path?: unknown }[]; relist?: unknown };
  if (relist === true) return true;
  return (items ?? []).some(
    ({ path }) => typeof path === "string" && path.startsWith("workspace/") && !UNWATCHED.test(path),
  );
}
