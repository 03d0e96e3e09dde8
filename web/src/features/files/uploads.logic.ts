import { LANGUAGE } from "../../language/translation";
import { joinPath } from "./tree.logic";

export interface FileUpload {
  /** Its path in the workspace. */
  to: string;
  file: File;
}

export interface FailedUpload extends FileUpload {
  message: string;
  /** A file with this name exists. It can be replaced. */
  exists: boolean;
}

export interface UploadProgress {
  total: number;
  done: number;
  bytes: number;
  sent: number;
  /** The path that is being uploaded. */
  current: string;
}

export const NO_PROGRESS: UploadProgress = { total: 0, done: 0, bytes: 0, sent: 0, current: "" };

/** The part that is done, from 0 to 1. */
export function fractionDone(progress: UploadProgress): number {
  if (progress.bytes > 0) return Math.min(1, progress.sent / progress.bytes);
  return progress.total === 0 ? 0 : progress.done / progress.total;
}

/** The uploads of picked files. Files of a picked folder come with their path. */
export function uploadsOf(files: Iterable<File>, folder: string): FileUpload[] {
  return [...files].map((file) => ({ to: joinPath(folder, file.webkitRelativePath || file.name), file }));
}

/** A dropped file or folder, as the browser gives it. */
export interface DroppedEntry {
  isFile: boolean;
  isDirectory: boolean;
  name: string;
  file?: (done: (file: File) => void, failed: (error: unknown) => void) => void;
  createReader?: () => {
    readEntries: (done: (entries: DroppedEntry[]) => void, failed: (error: unknown) => void) => void;
  };
}

const MAX_DROPPED = 20_000;

/** All files in dropped files and folders. A reader returns its entries in parts. */
export async function readDropped(dropped: readonly DroppedEntry[], folder: string): Promise<FileUpload[]> {
  const found: FileUpload[] = [];
  const visit = async (entry: DroppedEntry, into: string): Promise<void> => {
    const path = joinPath(into, entry.name);
    if (found.length >= MAX_DROPPED)
      throw new Error(`You can upload at most ${MAX_DROPPED.toLocaleString(LANGUAGE)} files at once`);
    if (entry.isFile) {
      const file = await new Promise<File>((done, failed) => entry.file?.(done, failed));
      found.push({ to: path, file });
    } else if (entry.isDirectory && entry.createReader) {
      const reader = entry.createReader();
      for (;;) {
        const piece = await new Promise<DroppedEntry[]>((done, failed) => reader.readEntries(done, failed));
        if (piece.length === 0) return;
        for (const one of piece) await visit(one, path);
      }
    }
  };
  for (const entry of dropped) await visit(entry, folder);
  return found;
}
