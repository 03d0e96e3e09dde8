import { joined } from "./tree.logic";

export interface Wanted {
  /** Where it goes in the workspace. */
  to: string;
  file: File;
}

export interface Failure extends Wanted {
  message: string;
  /** Something of that name is there; it may be replaced. */
  exists: boolean;
}

export interface Progress {
  total: number;
  done: number;
  bytes: number;
  sent: number;
  /** The path under way. */
  now: string;
}

export const NONE: Progress = { total: 0, done: 0, bytes: 0, sent: 0, now: "" };

export function share(progress: Progress): number {
  if (progress.bytes > 0) return Math.min(1, progress.sent / progress.bytes);
  return progress.total === 0 ? 0 : progress.done / progress.total;
}

/** Names of a picked folder come with its path; a file's own name otherwise. */
export function wantedOf(files: Iterable<File>, folder: string): Wanted[] {
  return [...files].map((file) => ({ to: joined(folder, file.webkitRelativePath || file.name), file }));
}

/** What a browser gives of a dropped folder. */
export interface Dropped {
  isFile: boolean;
  isDirectory: boolean;
  name: string;
  file?: (done: (file: File) => void, failed: (error: unknown) => void) => void;
  createReader?: () => { readEntries: (done: (entries: Dropped[]) => void, failed: (error: unknown) => void) => void };
}

export const MOST_DROPPED = 20_000;

/** Every file in what was dropped, folders included; a reader gives its entries in pieces. */
export async function filesIn(dropped: readonly Dropped[], folder: string): Promise<Wanted[]> {
  const found: Wanted[] = [];
  const visit = async (entry: Dropped, into: string): Promise<void> => {
    const path = joined(into, entry.name);
    if (found.length >= MOST_DROPPED) throw new Error(`More than ${MOST_DROPPED.toLocaleString("en")} files at once`);
    if (entry.isFile) {
      const file = await new Promise<File>((done, failed) => entry.file?.(done, failed));
      found.push({ to: path, file });
    } else if (entry.isDirectory && entry.createReader) {
      const reader = entry.createReader();
      for (;;) {
        const piece = await new Promise<Dropped[]>((done, failed) => reader.readEntries(done, failed));
        if (piece.length === 0) return;
        for (const one of piece) await visit(one, path);
      }
    }
  };
  for (const entry of dropped) await visit(entry, folder);
  return found;
}
