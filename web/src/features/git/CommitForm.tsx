import { type FormEvent, useContext, useState } from "react";
import { type Problem, problemOf } from "../../client/http";
import { Notice } from "../../ui/Notice";
import { PaneContext } from "../../ui/pane";
import { askForMessage } from "./commitMessage";
import type { RunGit } from "./GitPage";

interface CommitFormProps {
  folder: string;
  /** Staged files. */
  count: number;
  busy: boolean;
  run: RunGit;
}

/** Commits what is staged. Beside a session, its agent can be asked for the message. */
export function CommitForm({ folder, count, busy, run }: CommitFormProps) {
  const [message, setMessage] = useState("");
  const [isAsking, setAsking] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const session = useContext(PaneContext)?.session ?? null;

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (await run("commit", { message })) setMessage("");
  }
  async function ask() {
    if (session === null) return;
    setAsking(true);
    setProblem(null);
    try {
      setMessage(await askForMessage(session, folder));
    } catch (error) {
      setProblem(problemOf(error));
    }
    setAsking(false);
  }
  return (
    <form className="stack git-commit" aria-label="Commit" onSubmit={(event) => void submit(event)}>
      <textarea
        aria-label="Commit message"
        placeholder={isAsking ? "The agent writes a message…" : "Commit message"}
        rows={3}
        maxLength={20_000}
        value={message}
        onChange={(event) => setMessage(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
        }}
      />
      {problem && <Notice problem={problem} />}
      <div className="answers">
        <button type="submit" className="primary" disabled={busy || count === 0 || message.trim() === ""}>
          Commit {count > 0 && (count === 1 ? "1 file" : `${count} files`)}
        </button>
        {session !== null && (
          <button type="button" disabled={count === 0 || isAsking} onClick={() => void ask()}>
            {isAsking && <span className="spinner" aria-hidden="true" />} Ask the agent for a message
          </button>
        )}
      </div>
    </form>
  );
}
