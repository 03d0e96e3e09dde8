import { useEffect, useState } from "react";
import type { ShownFile } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";

/** Both versions of a file; null where it does not exist. */
export interface FileVersions {
  old: Uint8Array<ArrayBuffer> | null;
  now: Uint8Array<ArrayBuffer> | null;
  /** Whether one of them is longer than what was loaded. */
  cut: boolean;
}

/** The whole file as it was at an entry, read in parts that the browser may put on its disk. */
export async function readBlobAt(entry: number, path: string): Promise<Blob> {
  const parts: Blob[] = [];
  let offset = 0;
  for (;;) {
    const address = `/v1/history/${entry}/file?path=${encodeURIComponent(path)}&offset=${offset}`;
    const { base64, more } = await request<ShownFile>(address);
    const bytes = bytesOf(base64 ?? "");
    parts.push(new Blob([bytes]));
    offset += bytes.length;
    if (more !== true || bytes.length === 0) return new Blob(parts, { type: "application/octet-stream" });
  }
}

const bytesOf = (base64: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));

/** The start of a file as it was at an entry; null when it did not exist. */
export async function readFileAt(
  entry: number | null,
  path: string,
): Promise<{ bytes: Uint8Array<ArrayBuffer>; cut: boolean } | null> {
  if (entry === null) return null;
  const found = await request<ShownFile>(`/v1/history/${entry}/file?path=${encodeURIComponent(path)}`);
  if (typeof found.base64 !== "string") return null;
  return { bytes: bytesOf(found.base64), cut: found.more === true };
}

export const decodeText = (bytes: Uint8Array | null): string =>
  bytes === null ? "" : new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

/** Both versions of a file. Nothing is loaded while they are not `wanted`. */
export function useFileVersions(
  path: string,
  old: number | null,
  now: number | null,
  wanted: boolean,
): { versions: FileVersions | null; problem: Problem | null } {
  const [held, setHeld] = useState<{ key: string; versions: FileVersions | null; problem: Problem | null }>({
    key: "",
    versions: null,
    problem: null,
  });
  const key = `${path}\n${old}\n${now}`;
  useEffect(() => {
    if (!wanted) return;
    let current = true;
    Promise.all([readFileAt(old, path), readFileAt(now, path)])
      .then(([before, after]) => {
        const versions = {
          old: before?.bytes ?? null,
          now: after?.bytes ?? null,
          cut: before?.cut === true || after?.cut === true,
        };
        if (current) setHeld({ key, versions, problem: null });
      })
      .catch((error: unknown) => current && setHeld({ key, versions: null, problem: problemOf(error) }));
    return () => {
      current = false;
    };
  }, [key, path, old, now, wanted]);
  return held.key === key ? held : { versions: null, problem: null };
}
