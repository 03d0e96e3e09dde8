import type { PreviewPort } from "../../client/api";

export type Width = "phone" | "tablet" | "full";

/** How wide a page is drawn, in pixels; null takes all the room there is. */
export const WIDTHS: readonly { width: Width; label: string; pixels: number | null }[] = [
  { width: "phone", label: "Phone", pixels: 390 },
  { width: "tablet", label: "Tablet", pixels: 820 },
  { width: "full", label: "Full width", pixels: null },
];

export function pixelsOf(width: Width): number | null {
  return WIDTHS.find((one) => one.width === width)?.pixels ?? null;
}

export const LOWEST = 1024;
export const HIGHEST = 65535;

/** A port as it was typed or stands in the address; null when no preview can have it. */
export function readPort(text: string | null): number | null {
  if (text === null || !/^[1-9]\d{3,4}$/.test(text)) return null;
  const port = Number(text);
  return port >= LOWEST && port <= HIGHEST ? port : null;
}

/** Which port is shown: the one asked for, whether or not it is there yet; else a service of the owner's, else the first. */
export function choosePort(ports: readonly PreviewPort[], wanted: number | null): number | null {
  return wanted ?? ports.find((one) => one.service !== null)?.port ?? ports[0]?.port ?? null;
}

/** What listens, in a word: the owner's name for it before the program's. */
export function nameOf(port: PreviewPort): string {
  return port.service ?? port.process ?? "";
}

const LONGEST = 2_000;

/** A path in the preview as the owner typed it, or a whole address of it; null when it leads elsewhere. */
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
  if (address.origin !== origin || path.startsWith("//") || path.includes("\\") || path.length > LONGEST) return null;
  return path;
}

/** How much smaller a page is drawn so that all of its width is seen. */
export function scaleFor(pixels: number | null, room: number): number {
  return pixels === null || room <= 0 || room >= pixels ? 1 : room / pixels;
}
