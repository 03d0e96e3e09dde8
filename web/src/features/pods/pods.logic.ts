import type { Document, PodAccess } from "../../client/api";

/** The folder above; null for the root. */
export function parentOf(folder: string): string | null {
  if (folder === "") return null;
  const parts = folder.replace(/\/$/, "").split("/");
  return parts.length === 1 ? "" : `${parts.slice(0, -1).join("/")}/`;
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
  return folder === "" ? "everything" : folder;
}
