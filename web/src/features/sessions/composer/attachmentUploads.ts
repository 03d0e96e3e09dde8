/** Files that are on their way into the workspace, by session. They go on while another session or page is shown. */

import { uploadFile } from "../../files/fileRequests";
import { attachmentPath, withFiles } from "./attachments.logic";
import { type Draft, readDraft, writeDraft } from "./draft";

export interface AttachmentUpload {
  id: string;
  name: string;
  size: number;
  /** Bytes of it that were sent. */
  sent: number;
  cancel: () => void;
}

const NONE: readonly AttachmentUpload[] = [];
const running = new Map<string, readonly AttachmentUpload[]>();
const listeners = new Set<() => void>();
/** Who shows the draft of a session now, and takes the file into it. */
const takers = new Map<string, (path: string) => void>();

export const uploadsOf = (session: string): readonly AttachmentUpload[] => running.get(session) ?? NONE;

export function listenToUploads(changed: () => void): () => void {
  listeners.add(changed);
  return () => listeners.delete(changed);
}

function change(session: string, to: (held: readonly AttachmentUpload[]) => readonly AttachmentUpload[]): void {
  const next = to(uploadsOf(session));
  if (next.length === 0) running.delete(session);
  else running.set(session, next);
  for (const changed of listeners) changed();
}

export const withUploaded = (draft: Draft, path: string): Draft => ({
  text: withFiles(draft.text, [path]),
  picked: [...draft.picked, path],
});

/** From now on the files of a session are named in the draft on the page. Returns what ends it. */
export function takeUploads(session: string, take: (path: string) => void): () => void {
  takers.set(session, take);
  return () => {
    if (takers.get(session) === take) takers.delete(session);
  };
}

/** Sends the files one after another. The message of the session names each that has arrived. */
export async function uploadAttachments(
  session: string,
  files: readonly File[],
  onFailed: (error: unknown) => void,
): Promise<void> {
  const now = new Date();
  const waiting = files.map((file, index) => {
    const left = new AbortController();
    const id = crypto.randomUUID();
    const remove = () => change(session, (held) => held.filter((one) => one.id !== id));
    const cancel = () => {
      left.abort();
      remove();
    };
    const upload = { id, name: file.name, size: file.size, sent: 0, cancel };
    return { file, path: attachmentPath(file.name, now, index), upload, signal: left.signal, remove };
  });
  change(session, (held) => [...held, ...waiting.map((one) => one.upload)]);
  for (const { file, path, upload, signal, remove } of waiting) {
    if (signal.aborted) continue;
    const onProgress = (sent: number) =>
      change(session, (held) => held.map((one) => (one.id === upload.id ? { ...one, sent } : one)));
    try {
      await uploadFile(path, file, { replace: false, signal, onProgress });
      const take = takers.get(session);
      if (take === undefined) writeDraft(session, withUploaded(readDraft(session), path));
      else take(path);
    } catch (error) {
      if (!signal.aborted) onFailed(error);
    }
    remove();
  }
}
