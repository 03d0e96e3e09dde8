import { downloadAs, type Problem, problemIn, RequestFailed, request, upload } from "../../client/http";
import { authorization } from "../../client/signInKey";

export const contentPath = (path: string): string => `/v1/files/content?path=${encodeURIComponent(path)}`;

export const downloadFile = (path: string): Promise<void> =>
  downloadAs(contentPath(path), path.slice(path.lastIndexOf("/") + 1));

export const createFolder = (path: string): Promise<unknown> =>
  request("/v1/files/folder", { method: "POST", body: { path } });

export const createFile = (path: string): Promise<unknown> =>
  upload(contentPath(path), new Blob([]), { "if-none-match": "*" });

export const moveFile = (path: string, to: string): Promise<unknown> =>
  request("/v1/files/move", { method: "POST", body: { path, to } });

export const removeFile = (path: string): Promise<unknown> =>
  request("/v1/files/remove", { method: "POST", body: { path, recursive: true } });

interface SendOptions {
  replace: boolean;
  signal: AbortSignal;
  onProgress: (sent: number) => void;
}

/** Like `upload`, with progress, which fetch does not report. */
export function uploadFile(path: string, file: Blob, { replace, signal, onProgress }: SendOptions): Promise<void> {
  return new Promise((done, failed) => {
    const sending = new XMLHttpRequest();
    const refuse = (status: number, problem: Problem) => failed(new RequestFailed(status, problem));
    sending.open("PUT", contentPath(path));
    for (const [name, value] of Object.entries(authorization())) sending.setRequestHeader(name, value);
    sending.setRequestHeader("content-type", "application/octet-stream");
    if (!replace) sending.setRequestHeader("if-none-match", "*");
    sending.upload.onprogress = (event) => onProgress(Math.min(event.loaded, file.size));
    sending.onload = () => {
      if (sending.status < 300) return done();
      refuse(sending.status, problemIn(sending.responseText, sending.status));
    };
    sending.onerror = () =>
      refuse(0, { code: "gateway.unreachable", message: "The connection was lost.", hint: "Try again in a moment." });
    sending.onabort = () => failed(new DOMException("cancelled", "AbortError"));
    signal.addEventListener("abort", () => sending.abort(), { once: true });
    sending.send(file);
  });
}
