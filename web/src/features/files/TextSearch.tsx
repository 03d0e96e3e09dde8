import { useEffect, useMemo, useState } from "react";
import type { FilesFound } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";
import { Notice } from "../../ui/Notice";
import { byFile, marked } from "./search.logic";

const SETTLE = 250;
const MOST = 1_000;

/** Lines that hold what was typed, by file. */
export function TextSearch({ typed, all, onOpen }: { typed: string; all: boolean; onOpen: (path: string, line: number) => void }) {
  const [matchCase, setMatchCase] = useState(false);
  const [regex, setRegex] = useState(false);
  const [found, setFound] = useState<FilesFound | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  // Spaces at either end may be meant.
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
      const query = new URLSearchParams({ query: wanted, regex: String(regex), ignore_case: String(!matchCase), all: String(all), limit: String(MOST) });
      request<FilesFound>(`/v1/files/search?${query.toString()}`)
        .then((answer) => current && setFound(answer))
        .catch((error: unknown) => {
          if (!current) return;
          setFound(null);
          setProblem(problemOf(error));
        })
        .finally(() => current && setBusy(false));
    }, SETTLE);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [wanted, regex, matchCase, all]);

  const groups = useMemo(() => byFile(found?.hits ?? []), [found]);
  return (
    <div className="text-search" aria-busy={busy}>
      <div className="text-options">
        <button className="small" aria-pressed={matchCase} onClick={() => setMatchCase(!matchCase)} title="Match case">
          Aa
        </button>
        <button className="small" aria-pressed={regex} onClick={() => setRegex(!regex)} title="Regular expression">
          .*
        </button>
        <span className="quiet" role="status">
          {busy ? "Searching…" : found === null ? "" : found.hits.length === 0 ? "Nothing found" : `${found.hits.length.toLocaleString()}${found.more ? "+" : ""} in ${groups.length.toLocaleString()} ${groups.length === 1 ? "file" : "files"}`}
        </span>
      </div>
      {problem && <Notice problem={problem} />}
      <ul className="text-hits" aria-label="Lines found">
        {groups.map((group) => (
          <li key={group.path}>
            <span className="text-file" title={group.path}>
              {group.path}
            </span>
            {group.hits.map((hit) => (
              <button key={hit.line} className="text-hit" onClick={() => onOpen(hit.path, hit.line)}>
                <span className="quiet">{hit.line}</span>
                <span className="text-line">
                  {marked(hit, wanted, regex).map((piece, index) => (piece.hit ? <mark key={index}>{piece.text}</mark> : <span key={index}>{piece.text}</span>))}
                </span>
              </button>
            ))}
          </li>
        ))}
      </ul>
      {found?.more && <p className="quiet tree-note">There is more. Say more exactly what to look for.</p>}
    </div>
  );
}
