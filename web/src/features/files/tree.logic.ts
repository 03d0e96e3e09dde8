export type Kind = "file" | "folder" | "link" | "other";

export interface Node {
  path: string;
  name: string;
  kind: Kind;
  size: number;
}

export interface ShownNode extends Node {
  depth: number;
  open: boolean;
}

/** Every file below the workspace. Children are sorted only when their folder is first looked into. */
export class Tree {
  private nodes = new Map<string, Node>();
  private children = new Map<string, Set<string>>();
  private sorted = new Map<string, Node[]>();

  constructor(rows: readonly (readonly [string, string, number])[] = []) {
    for (const [path, kind, size] of rows) this.put(path, kind as Kind, size);
  }

  get size(): number {
    return this.nodes.size;
  }

  get(path: string): Node | undefined {
    return this.nodes.get(path);
  }

  put(path: string, kind: Kind, size: number): void {
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

  /** What is in a folder: folders first, then by name as people count. */
  in(folder: string): Node[] {
    const known = this.sorted.get(folder);
    if (known) return known;
    const found = [...(this.children.get(folder) ?? [])].flatMap((path) => this.nodes.get(path) ?? []);
    found.sort((a, b) => Number(b.kind === "folder") - Number(a.kind === "folder") || ORDER.compare(a.name, b.name));
    this.sorted.set(folder, found);
    return found;
  }

  /** The rows to draw when these folders are open. */
  shown(open: ReadonlySet<string>): ShownNode[] {
    const rows: ShownNode[] = [];
    const visit = (folder: string, depth: number) => {
      for (const node of this.in(folder)) {
        const isOpen = node.kind === "folder" && open.has(node.path);
        rows.push({ ...node, depth, open: isOpen });
        if (isOpen) visit(node.path, depth + 1);
      }
    };
    visit("", 0);
    return rows;
  }

  /** Files whose path holds the words, the closest first. */
  named(typed: string, most = 300): ShownNode[] {
    const wanted = typed.toLowerCase();
    const found: { node: Node; points: number }[] = [];
    for (const node of this.nodes.values()) {
      const at = node.path.toLowerCase().lastIndexOf(wanted);
      if (at < 0) continue;
      const inName = at >= node.path.length - node.name.length;
      found.push({ node, points: (inName ? 0 : 1000) + node.path.length });
    }
    found.sort((a, b) => a.points - b.points);
    return found.slice(0, most).map(({ node }) => ({ ...node, name: node.path, depth: 0, open: false }));
  }
}

/** How often each path was heard of, so that an answer that was asked for before is known to be old. */
export class Latest {
  private counts = new Map<string, number>();

  note(path: string): void {
    this.counts.set(path, this.of(path) + 1);
  }

  of(path: string): number {
    return this.counts.get(path) ?? 0;
  }
}

const ORDER = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

export function folderOf(path: string): string {
  const at = path.lastIndexOf("/");
  return at < 0 ? "" : path.slice(0, at);
}

export function joined(folder: string, name: string): string {
  return folder === "" ? name : `${folder}/${name}`;
}

/** The path in the workspace that a change is about; null when it lies elsewhere. */
export function inWorkspace(path: string): string | null {
  return path.startsWith("workspace/") ? path.slice("workspace/".length) : null;
}

const SKIPPED = new Set([".git", "node_modules", "__pycache__", ".venv"]);

/** Whether the tree leaves it out, as the gateway's does. */
export function isSkipped(path: string): boolean {
  return path.split("/").some((part) => SKIPPED.has(part));
}
