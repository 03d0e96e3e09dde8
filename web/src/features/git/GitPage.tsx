import { useState } from "react";
import type { GitRepositories, GitState } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Notice } from "../../ui/Notice";
import { useGo, useRoute } from "../../ui/route";
import { visibleText } from "../../ui/visibleText";
import { BranchBar } from "./BranchBar";
import { ChangedFiles } from "./ChangedFiles";
import { CommitForm } from "./CommitForm";
import { CommitLog } from "./CommitLog";
import { filesOn } from "./git.logic";
import { Worktrees } from "./Worktrees";
import "./git.css";

const LIVE = { topic: "files", delay: 500 };

/** Sends one command of git. True when it was done. */
export type RunGit = (what: string, body: Record<string, unknown>) => Promise<boolean>;

/** The repositories of the workspace: what changed, commits, branches, worktrees and remotes. */
export default function GitPage() {
  const { query } = useRoute();
  const go = useGo();
  const repositories = useResource<GitRepositories>("/v1/git/repositories", LIVE);
  const folders = repositories.value?.folders ?? [];
  const asked = query.get("folder");
  const folder = asked ?? folders[0] ?? null;
  const choices = folder === null || folders.includes(folder) ? folders : [...folders, folder];
  const state = useResource<GitState>(
    folder === null ? null : `/v1/git/state?folder=${encodeURIComponent(folder)}`,
    LIVE,
  );
  const [failure, setFailure] = useState<Problem | null>(null);
  const [busy, setBusy] = useState<string | null>(null);
  const [changes, setChanges] = useState(0);

  const run: RunGit = async (what, body) => {
    setBusy(what);
    setFailure(null);
    try {
      await request(`/v1/git/${what}`, { method: "POST", body: { folder, ...body } });
      return true;
    } catch (error) {
      setFailure(problemOf(error));
      return false;
    } finally {
      setBusy(null);
      setChanges((count) => count + 1);
      repositories.reload();
      state.reload();
    }
  };

  const problem = failure ?? repositories.problem ?? (folder === null ? null : state.problem);
  const found = state.value;
  return (
    <div className="column git">
      <header className="head git-head">
        <h1>Git</h1>
        {choices.length > 1 && (
          <select
            aria-label="Repository"
            value={folder ?? ""}
            onChange={(event) => go(`/git?folder=${encodeURIComponent(event.target.value)}`)}
          >
            {choices.map((one) => (
              <option key={one} value={one}>
                {one === "." ? "the workspace" : visibleText(one)}
              </option>
            ))}
          </select>
        )}
      </header>
      {problem && (
        <Notice
          problem={problem}
          action={
            failure === null
              ? { label: "Try again", run: state.reload }
              : { label: "Close", run: () => setFailure(null) }
          }
        />
      )}
      {repositories.value === null && problem === null && <p className="loading quiet">Loading…</p>}
      {repositories.value !== null && folder === null && (
        <p className="empty">
          No folder of the workspace is a git repository. Ask an agent to make one, or run <code>git init</code> in a
          terminal.
        </p>
      )}
      {folder !== null && found !== null && (
        <>
          <BranchBar state={found} busy={busy} run={run} />
          <ChangedFiles key={`worktree ${folder}`} state={found} side="worktree" busy={busy !== null} run={run} />
          <ChangedFiles key={`index ${folder}`} state={found} side="index" busy={busy !== null} run={run} />
          <CommitForm
            key={folder}
            folder={folder}
            count={filesOn("index", found.files).length}
            model={found.message_model}
            busy={busy !== null}
            run={run}
          />
          <CommitLog key={`log ${folder}`} folder={folder} head={`${found.commit} ${changes}`} />
          <Worktrees state={found} folder={folder} busy={busy !== null} run={run} />
        </>
      )}
    </div>
  );
}
