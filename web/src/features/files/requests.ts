import { download, request, upload } from "../../client/http";

export const contentPath = (path: string): string => `/v1/files/content?path=${encodeURIComponent(path)}`;

/** Hands a file to the browser to keep. */
export async function saveAs(path: string): Promise<void> {
  const { bytes } = await download(contentPath(path));
  const address = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = path.slice(path.lastIndexOf("/") + 1);
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export const makeFolder = (path: string): Promise<unknown> => request("/v1/files/folder", { method: "POST", body: { path } });

export const makeFile = (path: string): Promise<unknown> => upload(contentPath(path), new Blob([]), { "if-none-match": "*" });

export const putFile = (path: string, file: Blob): Promise<unknown> => upload(contentPath(path), file, { "if-none-match": "*" });

export const moveFile = (path: string, to: string): Promise<unknown> => request("/v1/files/move", { method: "POST", body: { path, to } });

export const removeFile = (path: string): Promise<unknown> => request("/v1/files/remove", { method: "POST", body: { path, recursive: true } });
