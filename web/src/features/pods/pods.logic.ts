import type { Document, PodAccess } from "../../client/api";
import { translate } from "../../language/translation";
import { formatBytes, formatDateTime } from "../../ui/format";

/** The folders on the way to this one, itself included: `a/b/` is in `a/`. */
export function trailOf(folder: string): string[] {
  const names = folder.split("/").slice(0, -1);
  return names.map((_, place) => `${names.slice(0, place + 1).join("/")}/`);
}

/** What a document is, in a line. What the store does not tell is left out. */
export function factsOf({ media, size, modified }: Document): string {
  const facts = [media, size === null ? null : formatBytes(size)];
  if (modified !== null) facts.push(formatDateTime(Date.parse(modified) / 1000));
  return facts.filter((fact) => fact !== null).join(" · ");
}

/** Adds a page to those that are shown, each entry once. */
export function mergeEntries(shown: readonly Document[], next: readonly Document[]): Document[] {
  const known = new Set(shown.map((entry) => entry.path));
  return [...shown, ...next.filter((entry) => !known.has(entry.path))];
}

/** The last part of a path, with the slash of a folder. */
export function nameOf(path: string): string {
  const isFolder = path.endsWith("/");
  const name = path.replace(/\/$/, "").split("/").at(-1) ?? path;
  return isFolder ? `${name}/` : name;
}

export function isFolder(entry: Document): boolean {
  return entry.path.endsWith("/");
}

const MAX_READ = 1_000_000;

/** Whether the page can show it: text of at most a megabyte. */
export function isText({ media, size }: Document): boolean {
  if (media === null || (size ?? 0) > MAX_READ) return false;
  return media.startsWith("text/") || /^application\/(?:.*\+)?(?:json|xml|yaml|toml)$/.test(media);
}

/** The address of a document. Each part is encoded, and the slashes stay. */
export function addressOf(path: string): string {
  return `/v1/slots/pods/data/${path.split("/").map(encodeURIComponent).join("/")}`;
}

/** What somebody did, in words. */
export function accessText(access: PodAccess): string {
  const who = access.agent ?? access.who.replace(/^token:/, "token ");
  const act = {
    read: "read",
    list: "listed",
    write: "wrote",
    delete: "deleted",
    refused: "was refused",
  }[access.act];
  return `${who} ${act} ${access.path === "" ? "/" : access.path}`;
}

/** The folder as it is shown. */
export function folderText(folder: string): string {
  return folder === "" ? translate("everything") : folder;
}
