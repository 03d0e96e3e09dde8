export type FileKind = "file" | "folder" | "link" | "other";

export interface TreeNode {
  path: string;
  name: string;
  kind: FileKind;
  size: number;
}

export interface TreeRow extends TreeNode {
  depth: number;
  open: boolean;
}

/** The files of the workspace. The content of a folder is sorted when it is first shown. */
export class Tree {
  private nodes = new Map<string, TreeNode>();
  private children = new Map<string, Set<string>>();
  private sorted = new Map<string, TreeNode[]>();

  constructor(rows: readonly (readonly [string, string, number])[] = []) {
    for (const [path, kind, size] of rows) this.put(path, kind as FileKind, size);
  }

  get size(): number {
    return this.nodes.size;
  }

  get(path: string): TreeNode | undefined {
    return this.nodes.get(path);
  }

  put(path: string, kind: FileKind, size: number): void {
    const parent = folderOf(path);
    if (parent !== "" && !this.nodes.has(parent)) this.put(parent, "folder", 0);
    this.nodes.set(path, { path, name: path.slice(parent === "" ? 0 : parent.length + 1), kind, size });
    const siblings = this.children.get(parent) ?? new Set();
    siblings.add(path);
    this.children.set(parent, siblings);
    this.sorted.delete(parent);
  }

  remove(path: string): void {
    for (const child of this.children.get(path) ?? []) this.remove(child);
    this.children.delete(path);
    this.sorted.delete(path);
    if (!this.nodes.delete(path)) return;
    const parent = folderOf(path);
    this.children.get(parent)?.delete(path);
    this.sorted.delete(parent);
  }

  /** The content of a folder: folders first, then by name with numbers in order. */
  contentOf(folder: string): TreeNode[] {
    const known = this.sorted.get(folder);
    if (known) return known;
    const found = [...(this.children.get(folder) ?? [])].flatMap((path) => this.nodes.get(path) ?? []);
    found.sort((a, b) => Number(b.kind === "folder") - Number(a.kind === "folder") || ORDER.compare(a.name, b.name));
    this.sorted.set(folder, found);
    return found;
  }

  /** The rows to draw when these folders are open. */
  visibleRows(open: ReadonlySet<string>): TreeRow[] {
    const rows: TreeRow[] = [];
    const visit = (folder: string, depth: number) => {
      for (const node of this.contentOf(folder)) {
        const isOpen = node.kind === "folder" && open.has(node.path);
        rows.push({ ...node, depth, open: isOpen });
        if (isOpen) visit(node.path, depth + 1);
      }
    };
    visit("", 0);
    return rows;
  }

  /** Files whose path contains the text, the best match first. */
  search(typed: string, limit = 300): TreeRow[] {
    const wanted = typed.toLowerCase();
    const found: { node: TreeNode; points: number }[] = [];
    for (const node of this.nodes.values()) {
      const at = node.path.toLowerCase().lastIndexOf(wanted);
      if (at < 0) continue;
      const inName = at >= node.path.length - node.name.length;
      found.push({ node, points: (inName ? 0 : 1000) + node.path.length });
    }
    found.sort((a, b) => a.points - b.points);
    return found.slice(0, limit).map(({ node }) => ({ ...node, name: node.path, depth: 0, open: false }));
  }
}

/** Counts the changes of each path, so that a reply that was requested before a change is recognized as old. */
export class ChangeCounter {
  private counts = new Map<string, number>();

  add(path: string): void {
    this.counts.set(path, this.countOf(path) + 1);
  }

  countOf(path: string): number {
    return this.counts.get(path) ?? 0;
  }
}

/** Where the list of each folder goes on. */
export class FolderCursors {
  private cursors = new Map<string, string | null>();

  /** Where to go on, empty at the start; null when the folder is complete or being listed. */
  take(folder: string): string | null {
    const cursor = this.cursors.get(folder);
    this.cursors.set(folder, null);
    return cursor === undefined ? "" : cursor;
  }

  put(folder: string, next: string | null): void {
    this.cursors.set(folder, next);
  }
}

/** The entries of a folder as rows of the tree. */
export function listedRows(
  folder: string,
  entries: readonly { name: string; kind: string; size: number }[],
  all: boolean,
): [path: string, kind: FileKind, size: number][] {
  return entries
    .filter((entry) => all || !isIgnored(entry.name))
    .map((entry) => [joinPath(folder, entry.name), entry.kind as FileKind, entry.size]);
}

const ORDER = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

export function folderOf(path: string): string {
  const at = path.lastIndexOf("/");
  return at < 0 ? "" : path.slice(0, at);
}

export function joinPath(folder: string, name: string): string {
  return folder === "" ? name : `${folder}/${name}`;
}

/** A path relative to the workspace; null when it is elsewhere. */
export function workspacePath(path: string): string | null {
  return path.startsWith("workspace/") ? path.slice("workspace/".length) : null;
}

const IGNORED = new Set([".git", "node_modules", "__pycache__", ".venv"]);

/** Whether the tree leaves a path out, like the tree of the gateway. */
export function isIgnored(path: string): boolean {
  return path.split("/").some((part) => IGNORED.has(part));
}
