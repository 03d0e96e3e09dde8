import { request, RequestFailed, upload, type Problem } from "../../client/http";

export const contentPath = (path: string): string => `/v1/files/content?path=${encodeURIComponent(path)}`;

/** Hands a file to the browser to keep; it goes to the disk as it comes, however large. */
export function saveAs(path: string): void {
  const link = document.createElement("a");
  link.href = contentPath(path);
  link.download = path.slice(path.lastIndexOf("/") + 1);
  link.click();
}

export const makeFolder = (path: string): Promise<unknown> => request("/v1/files/folder", { method: "POST", body: { path } });

export const makeFile = (path: string): Promise<unknown> => upload(contentPath(path), new Blob([]), { "if-none-match": "*" });

export const moveFile = (path: string, to: string): Promise<unknown> => request("/v1/files/move", { method: "POST", body: { path, to } });

export const removeFile = (path: string): Promise<unknown> => request("/v1/files/remove", { method: "POST", body: { path, recursive: true } });

interface SendOptions {
  replace: boolean;
  signal: AbortSignal;
  onProgress: (sent: number) => void;
}

/** Like `upload`, and tells how far it is, which fetch does not. */
export function sendFile(path: string, file: Blob, { replace, signal, onProgress }: SendOptions): Promise<void> {
  return new Promise((done, failed) => {
    const sending = new XMLHttpRequest();
    const refuse = (status: number, problem: Problem) => failed(new RequestFailed(status, problem));
    sending.open("PUT", contentPath(path));
    sending.setRequestHeader("content-type", "application/octet-stream");
    if (!replace) sending.setRequestHeader("if-none-match", "*");
    sending.upload.onprogress = (event) => onProgress(Math.min(event.loaded, file.size));
    sending.onload = () => {
      if (sending.status < 300) return done();
      try {
        refuse(sending.status, (JSON.parse(sending.responseText) as { error: Problem }).error);
      } catch {
        refuse(sending.status, { code: "gateway.odd-answer", message: `Freehold answered ${sending.status}.`, hint: "Try again in a moment." });
      }
    };
    sending.onerror = () => refuse(0, { code: "gateway.unreachable", message: "The connection broke.", hint: "Try again in a moment." });
    sending.onabort = () => failed(new DOMException("stopped", "AbortError"));
    signal.addEventListener("abort", () => sending.abort(), { once: true });
    sending.send(file);
  });
}
