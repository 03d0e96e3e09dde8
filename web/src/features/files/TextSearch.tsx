import { useEffect, useMemo, useState } from "react";
import type { FileSearchResult } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { Notice } from "../../ui/Notice";
import { highlightMatch, hitsByFile } from "./search.logic";

const TYPING_DELAY = 250;
const FIRST_HITS = 1_000;
const MAX_HITS = 5_000;

/** Finds lines in files, grouped by file. */
export function TextSearch({
  typed,
  all,
  onOpen,
}: {
  typed: string;
  all: boolean;
  onOpen: (path: string, line: number) => void;
}) {
  const [matchCase, setMatchCase] = useState(false);
  const [regex, setRegex] = useState(false);
  const [found, setFound] = useState<FileSearchResult | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const [showsAll, setShowsAll] = useState(false);
  // Spaces at the ends are part of the query.
  const wanted = typed.trim() === "" ? "" : typed;

  useEffect(() => {
    setProblem(null);
    if (wanted === "") {
      setFound(null);
      setBusy(false);
      return;
    }
    let current = true;
    setBusy(true);
    const timer = setTimeout(() => {
      const query = new URLSearchParams({
        query: wanted,
        regex: String(regex),
        ignore_case: String(!matchCase),
        all: String(all),
        limit: String(showsAll ? MAX_HITS : FIRST_HITS),
      });
      request<FileSearchResult>(`/v1/files/search?${query.toString()}`)
        .then((answer) => current && setFound(answer))
        .catch((error: unknown) => {
          if (!current) return;
          setFound(null);
          setProblem(problemOf(error));
        })
        .finally(() => current && setBusy(false));
    }, TYPING_DELAY);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [wanted, regex, matchCase, all, showsAll]);

  const groups = useMemo(() => hitsByFile(found?.hits ?? []), [found]);
  return (
    <div className="files-search" aria-busy={busy}>
      <div className="files-search-options">
        <button className="small" aria-pressed={matchCase} onClick={() => setMatchCase(!matchCase)} title="Match case">
          Aa
        </button>
        <button className="small" aria-pressed={regex} onClick={() => setRegex(!regex)} title="Regular expression">
          .*
        </button>
        <span className="quiet" role="status">
          {busy
            ? "Searching…"
            : found === null
              ? ""
              : found.hits.length === 0
                ? "Nothing found"
                : `${found.hits.length.toLocaleString()}${found.more ? "+" : ""} in ${groups.length.toLocaleString()} ${groups.length === 1 ? "file" : "files"}`}
        </span>
      </div>
      {problem && <Notice problem={problem} />}
      <ul className="files-hits" aria-label="Lines found">
        {groups.map((group) => (
          <li key={group.path}>
            <span className="files-hit-file" title={group.path}>
              {group.path}
            </span>
            {group.hits.map((hit) => (
              <button key={hit.line} className="files-hit" onClick={() => onOpen(hit.path, hit.line)}>
                <span className="quiet">{hit.line}</span>
                <span className="files-hit-line">
                  {highlightMatch(hit, wanted, regex).map((piece, index) =>
                    piece.hit ? <mark key={index}>{piece.text}</mark> : <span key={index}>{piece.text}</span>,
                  )}
                </span>
              </button>
            ))}
          </li>
        ))}
      </ul>
      {found?.more && showsAll && <p className="quiet split-note">There are more matches. Refine your search.</p>}
      {found?.more && !showsAll && (
        <button className="text-button split-note" disabled={busy} onClick={() => setShowsAll(true)}>
          Show more matches
        </button>
      )}
    </div>
  );
}
