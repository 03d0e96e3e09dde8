import { useState } from "react";
import type { GitDiff, GitFile, GitState } from "../../client/api";
import { useResource } from "../../data/resource";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { visibleText } from "../../ui/visibleText";
import { UnifiedDiffTable } from "../history/DiffTable";
import type { RunGit } from "./GitPage";
import { changeWord, filesOn, pathsOf, type Side, splitDiff } from "./git.logic";

/** Paths that the gateway takes at once. */
const MAX_STAGED = 2_000;

interface ChangedFilesProps {
  state: GitState;
  side: Side;
  busy: boolean;
  run: RunGit;
}

/** The files of one side. Each opens to its diff, whose parts can be staged alone. */
export function ChangedFiles({ state, side, busy, run }: ChangedFilesProps) {
  const [open, setOpen] = useState<string | null>(null);
  const files = filesOn(side, state.files);
  const isIndex = side === "index";
  const title = isIndex ? "Staged" : "Changes";
  const stage = (chosen: readonly GitFile[]) =>
    void run("stage", { files: pathsOf(side, chosen).slice(0, MAX_STAGED), staged: !isIndex });
  return (
    <section aria-labelledby={`git-${side}`}>
      <div className="section-head">
        <h2 id={`git-${side}`}>
          {title} <span className="quiet">{files.length}</span>
        </h2>
        {files.length > 0 && (
          <button type="button" className="small" disabled={busy} onClick={() => stage(files)}>
            {isIndex ? "Unstage all" : "Stage all"}
          </button>
        )}
      </div>
      {files.length === 0 ? (
        <p className="empty">{isIndex ? "Nothing is staged." : "No file has changes that are not staged."}</p>
      ) : (
        <ul className="rows git-files">
          {files.map((file) => (
            <li key={file.path}>
              <div className="git-file">
                <button
                  type="button"
                  className="git-file-name"
                  aria-expanded={open === file.path}
                  onClick={() => setOpen(open === file.path ? null : file.path)}
                >
                  <Icon name="chevron" size={16} />
                  <span className="grow">
                    {file.old_path !== null && `${visibleText(file.old_path)} → `}
                    {visibleText(file.path)}
                  </span>
                  <span className="chip" data-tone={file.has_conflict ? "alarm" : undefined}>
                    {changeWord(file, side)}
                  </span>
                </button>
                <button
                  type="button"
                  className="small"
                  disabled={busy}
                  aria-label={`${isIndex ? "Unstage" : "Stage"} ${visibleText(file.path)}`}
                  onClick={() => stage([file])}
                >
                  {isIndex ? "Unstage" : "Stage"}
                </button>
              </div>
              {open === file.path && <FileHunks state={state} file={file} side={side} busy={busy} run={run} />}
            </li>
          ))}
        </ul>
      )}
      {state.is_cut && !isIndex && <p className="quiet">There are more changed files than are shown here.</p>}
    </section>
  );
}

function FileHunks({ state, file, side, busy, run }: ChangedFilesProps & { file: GitFile }) {
  const query = new URLSearchParams({ folder: state.folder, file: file.path, side });
  const { value, problem } = useResource<GitDiff>(`/v1/git/diff?${query.toString()}`, { topic: "files", delay: 500 });
  if (problem) return <Notice problem={problem} />;
  if (value === null) return <p className="loading quiet fade-in-late">Loading…</p>;
  const { head, hunks } = splitDiff(value.text);
  const isIndex = side === "index";
  const canStage = value.is_exact && file.unstaged !== "?" && !file.has_conflict && hunks.length > 1;
  if (hunks.length === 0) return <p className="quiet git-note">{visibleText(lastLine(head)) || "No text changed."}</p>;
  return (
    <div className="git-hunks">
      {hunks.map((hunk, index) => (
        <div key={index} className="git-hunk">
          {canStage && (
            <button
              type="button"
              className="small"
              disabled={busy}
              onClick={() => void run("stage-hunk", { patch: head + hunk, staged: !isIndex })}
            >
              {isIndex ? "Unstage" : "Stage"} this part
            </button>
          )}
          <UnifiedDiffTable text={hunk} />
        </div>
      ))}
    </div>
  );
}

const lastLine = (text: string): string => text.trim().split("\n").at(-1) ?? "";
