import { useEffect, useState } from "react";
import type { FileTree } from "../../../client/api";
import { request } from "../../../client/http";
import { candidateOf, type Candidate } from "./suggest.logic";

const FRESH = 15_000;
let held: { at: number; files: readonly Candidate[] } | null = null;

/** Every file of the workspace, asked for when the first `@` is typed and again when that was a while ago. */
export function useCandidates(wanted: boolean): { files: readonly Candidate[]; state: "asking" | "there" | "failed" } {
  const [files, setFiles] = useState<readonly Candidate[] | null>(held?.files ?? null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (!wanted || (held !== null && Date.now() - held.at < FRESH)) return;
    let gone = false;
    request<FileTree>("/v1/files/tree?path=.")
      .then((tree) => {
        held = { at: Date.now(), files: tree.rows.map(([path, kind]) => candidateOf(path, kind)) };
        if (gone) return;
        setFiles(held.files);
        setFailed(false);
      })
      .catch(() => {
        if (!gone) setFailed(true);
      });
    return () => {
      gone = true;
    };
  }, [wanted]);
  return { files: files ?? [], state: failed ? "failed" : files === null ? "asking" : "there" };
}
