import type { ComparedFile } from "../../client/api";

export type FileRow<File> =
  | { kind: "folder"; path: string; name: string; depth: number; files: number; isOpen: boolean }
  | { kind: "file"; file: File; name: string; depth: number };

interface Folder<File> {
  path: string;
  folders: Map<string, Folder<File>>;
  files: File[];
}

/**
 * The changed files as rows of a tree, in the order of their paths. A folder that holds nothing but one folder shares
 * its row. What is in a closed folder has no row.
 */
export function fileRows<File extends Pick<ComparedFile, "path">>(
  files: readonly File[],
  closed: ReadonlySet<string>,
): FileRow<File>[] {
  const root: Folder<File> = { path: "", folders: new Map(), files: [] };
  for (const file of files) {
    let at = root;
    for (const name of file.path.split("/").slice(0, -1)) {
      const path = at.path === "" ? name : `${at.path}/${name}`;
      const inside = at.folders.get(name) ?? { path, folders: new Map(), files: [] };
      at.folders.set(name, inside);
      at = inside;
    }
    at.files.push(file);
  }
  const rows: FileRow<File>[] = [];
  addRows(root, 0, closed, rows);
  return rows;
}

function addRows<File extends Pick<ComparedFile, "path">>(
  folder: Folder<File>,
  depth: number,
  closed: ReadonlySet<string>,
  rows: FileRow<File>[],
): void {
  for (const found of folder.folders.values()) {
    let inside = found;
    while (inside.files.length === 0 && inside.folders.size === 1)
      [inside] = [...inside.folders.values()] as [typeof inside];
    const name = folder.path === "" ? inside.path : inside.path.slice(folder.path.length + 1);
    const isOpen = !closed.has(inside.path);
    rows.push({ kind: "folder", path: inside.path, name, depth, files: countFiles(inside), isOpen });
    if (isOpen) addRows(inside, depth + 1, closed, rows);
  }
  for (const file of folder.files)
    rows.push({ kind: "file", file, name: file.path.slice(file.path.lastIndexOf("/") + 1), depth });
}

const countFiles = <File>(folder: Folder<File>): number =>
  folder.files.length + [...folder.folders.values()].reduce((sum, inside) => sum + countFiles(inside), 0);

/** Files in the order in which the tree shows them. */
export function inTreeOrder<File extends Pick<ComparedFile, "path">>(files: readonly File[]): File[] {
  return fileRows(files, new Set()).flatMap((row) => (row.kind === "file" ? [row.file] : []));
}
