import { useEffect, useState } from "react";
import type { ShownFile } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";

export interface Contents {
  old: Uint8Array<ArrayBuffer> | null;
  now: Uint8Array<ArrayBuffer> | null;
  /** Of one of them only the beginning is there. */
  cut: boolean;
}

/** A file as it was at an entry; null where it was not. */
export async function fileAt(entry: number | null, path: string): Promise<{ bytes: Uint8Array<ArrayBuffer>; cut: boolean } | null> {
  if (entry === null) return null;
  const found = await request<ShownFile>(`/v1/history/${entry}/file?path=${encodeURIComponent(path)}`);
  if (typeof found.base64 !== "string") return null;
  return { bytes: Uint8Array.from(atob(found.base64), (char) => char.charCodeAt(0)), cut: found.more === true };
}

export const textOf = (bytes: Uint8Array | null): string => (bytes === null ? "" : new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes));

/** Both versions of a path, or neither while `wanted` is false. */
export function useContents(path: string, old: number | null, now: number | null, wanted: boolean): { contents: Contents | null; problem: Problem | null } {
  const [held, setHeld] = useState<{ key: string; contents: Contents | null; problem: Problem | null }>({ key: "", contents: null, problem: null });
  const key = `${path}\n${old}\n${now}`;
  useEffect(() => {
    if (!wanted) return;
    let current = true;
    Promise.all([fileAt(old, path), fileAt(now, path)])
      .then(([before, after]) => {
        const contents = { old: before?.bytes ?? null, now: after?.bytes ?? null, cut: before?.cut === true || after?.cut === true };
        if (current) setHeld({ key, contents, problem: null });
      })
      .catch((error: unknown) => current && setHeld({ key, contents: null, problem: problemOf(error) }));
    return () => {
      current = false;
    };
  }, [key, path, old, now, wanted]);
  return held.key === key ? held : { contents: null, problem: null };
}
