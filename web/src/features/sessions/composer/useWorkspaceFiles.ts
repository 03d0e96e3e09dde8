import { useEffect, useState } from "react";
import type { FileTree } from "../../../client/api";
import { request } from "../../../client/http";
import { type FileCandidate, fileCandidate } from "./suggestions.logic";

const MAX_AGE = 15_000;
let cache: { at: number; files: readonly FileCandidate[] } | null = null;

export interface WorkspaceFiles {
  all: readonly FileCandidate[];
  state: "loading" | "loaded" | "failed";
}

/** Every file of the workspace. They are fetched when the first `@` is typed, and again when the list is old. */
export function useWorkspaceFiles(wanted: boolean): WorkspaceFiles {
  const [files, setFiles] = useState<readonly FileCandidate[] | null>(cache?.files ?? null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (!wanted || (cache !== null && Date.now() - cache.at < MAX_AGE)) return;
    let mounted = true;
    request<FileTree>("/v1/files/tree?path=.")
      .then((tree) => {
        cache = { at: Date.now(), files: tree.rows.map(([path, kind]) => fileCandidate(path, kind)) };
        if (!mounted) return;
        setFiles(cache.files);
        setFailed(false);
      })
      .catch(() => {
        if (mounted) setFailed(true);
      });
    return () => {
      mounted = false;
    };
  }, [wanted]);
  return { all: files ?? [], state: failed ? "failed" : files === null ? "loading" : "loaded" };
}
