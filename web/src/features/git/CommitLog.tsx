import { useState } from "react";
import type { GitCommit, GitDiff, GitLog } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { formatDateTime, secondsOf } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { visibleText } from "../../ui/visibleText";
import { UnifiedDiffTable } from "../history/DiffTable";
import { splitFiles } from "./git.logic";

/** The commits, the newest first. `head` changes when there may be new ones. */
export function CommitLog({ folder, head }: { folder: string; head: string }) {
  const path = `/v1/git/log?folder=${encodeURIComponent(folder)}`;
  const log = useResource<GitLog>(path, { topic: "files", delay: 500 });
  const [older, setOlder] = useState<{ head: string; log: GitLog } | null>(null);
  const [open, setOpen] = useState<string | null>(null);
  const [failure, setFailure] = useState<Problem | null>(null);
  const more = older?.head === head ? older.log : null;
  const commits = [...(log.value?.commits ?? []), ...(more?.commits ?? [])];
  const next = more === null ? (log.value?.next ?? null) : more.next;
  const problem = failure ?? log.problem;

  async function loadMore() {
    try {
      const found = await request<GitLog>(`${path}&skip=${next}`);
      setOlder({ head, log: { commits: [...(more?.commits ?? []), ...found.commits], next: found.next } });
    } catch (error) {
      setFailure(problemOf(error));
    }
  }
  return (
    <section aria-labelledby="git-log">
      <h2 id="git-log">Log</h2>
      {problem && <Notice problem={problem} />}
      {log.value !== null && commits.length === 0 && <p className="empty">There are no commits yet.</p>}
      {commits.length > 0 && (
        <ul className="rows git-files">
          {commits.map((commit) => (
            <li key={commit.id}>
              <button
                type="button"
                className="git-file-name"
                aria-expanded={open === commit.id}
                onClick={() => setOpen(open === commit.id ? null : commit.id)}
              >
                <Icon name="chevron" size={16} />
                <span className="grow">
                  {visibleText(commit.subject)}
                  {commit.names.map((name) => (
                    <span key={name} className="chip git-name">
                      {visibleText(name)}
                    </span>
                  ))}
                  <span className="quiet git-facts">
                    {commit.id.slice(0, 7)} · {visibleText(commit.author)} · {formatDateTime(secondsOf(commit.at))}
                  </span>
                </span>
              </button>
              {open === commit.id && <CommitFiles folder={folder} commit={commit} />}
            </li>
          ))}
        </ul>
      )}
      {next !== null && (
        <button type="button" className="load-more" onClick={() => void loadMore()}>
          Show older commits
        </button>
      )}
    </section>
  );
}

function CommitFiles({ folder, commit }: { folder: string; commit: GitCommit }) {
  const query = new URLSearchParams({ folder, commit: commit.id });
  const { value, problem } = useResource<GitDiff>(`/v1/git/diff?${query.toString()}`);
  if (problem) return <Notice problem={problem} />;
  if (value === null) return <p className="loading quiet fade-in-late">Loading…</p>;
  const files = splitFiles(value.text);
  return (
    <div className="git-hunks">
      {files.length === 0 && <p className="quiet git-note">This commit changes no files.</p>}
      {files.map((file) => (
        <div key={file.path}>
          <h3 className="git-path">{visibleText(file.path)}</h3>
          <UnifiedDiffTable text={file.text} />
        </div>
      ))}
      {!value.is_exact && <p className="quiet git-note">Not all of it can be shown.</p>}
    </div>
  );
}
