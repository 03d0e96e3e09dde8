import { useCallback, useRef, useState } from "react";
import { problemOf, RequestFailed } from "../../client/http";
import { uploadFile } from "./fileRequests";
import { type FailedUpload, type FileUpload, NO_PROGRESS, type UploadProgress } from "./uploads.logic";

const MAX_PARALLEL = 3;

export interface Uploads {
  progress: UploadProgress;
  failures: readonly FailedUpload[];
  send: (uploads: readonly FileUpload[], options?: { replace?: boolean }) => void;
  cancel: () => void;
  clearFailures: () => void;
}

/** Uploads files, a few at a time. `onDone` gets their number when all are done. */
export function useUploads(onDone: (count: number) => void): Uploads {
  const [progress, setProgress] = useState<UploadProgress>(NO_PROGRESS);
  const [failures, setFailures] = useState<readonly FailedUpload[]>([]);
  const queue = useRef<{ upload: FileUpload; replace: boolean }[]>([]);
  const state = useRef({ running: 0, arrived: 0, stop: new AbortController() });

  const work = useCallback(async () => {
    const held = state.current;
    held.running++;
    for (let next = queue.current.shift(); next !== undefined; next = queue.current.shift()) {
      const { upload, replace } = next;
      let sent = 0;
      const report = (to: number) => {
        const more = to - sent;
        sent = to;
        setProgress((now) => ({ ...now, sent: now.sent + more, current: upload.to }));
      };
      try {
        await uploadFile(upload.to, upload.file, { replace, signal: held.stop.signal, onProgress: report });
        held.arrived++;
      } catch (error) {
        if (held.stop.signal.aborted) break;
        const exists = error instanceof RequestFailed && error.status === 409;
        setFailures((all) => [...all, { ...upload, message: problemOf(error).message, exists }]);
      }
      report(upload.file.size);
      setProgress((now) => ({ ...now, done: now.done + 1 }));
    }
    if (--held.running > 0) return;
    setProgress(NO_PROGRESS);
    if (held.arrived > 0) onDone(held.arrived);
    held.arrived = 0;
  }, [onDone]);

  const send = useCallback(
    (uploads: readonly FileUpload[], options: { replace?: boolean } = {}) => {
      if (uploads.length === 0) return;
      const held = state.current;
      if (held.stop.signal.aborted) held.stop = new AbortController();
      queue.current.push(...uploads.map((one) => ({ upload: one, replace: options.replace ?? false })));
      const bytes = uploads.reduce((all, one) => all + one.file.size, 0);
      setProgress((now) => ({ ...now, total: now.total + uploads.length, bytes: now.bytes + bytes }));
      while (held.running < Math.min(MAX_PARALLEL, uploads.length)) void work();
    },
    [work],
  );
  const cancel = useCallback(() => {
    queue.current = [];
    state.current.stop.abort();
  }, []);
  const clearFailures = useCallback(() => setFailures([]), []);
  return { progress, failures, send, cancel, clearFailures };
}
