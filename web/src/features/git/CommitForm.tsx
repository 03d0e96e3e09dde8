import { type FormEvent, useContext, useState } from "react";
import { type Problem, problemOf } from "../../client/http";
import { countOf } from "../../ui/format";
import { Notice } from "../../ui/Notice";
import { PaneSessionContext } from "../../ui/pane";
import { visibleText } from "../../ui/visibleText";
import { askForMessage, proposeMessage } from "./commitMessage";
import type { RunGit } from "./GitPage";

interface CommitFormProps {
  folder: string;
  /** Staged files. */
  count: number;
  /** A model that can write the message; null when none is cheap. */
  model: string | null;
  busy: boolean;
  run: RunGit;
}

const WRITING = { agent: "The agent writes a message…", model: "The model writes a message…" } as const;

/** Commits what is staged. The agent of the session beside it, or else a cheap model, can be asked for the message. */
export function CommitForm({ folder, count, model, busy, run }: CommitFormProps) {
  const [message, setMessage] = useState("");
  const [isAsking, setAsking] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const session = useContext(PaneSessionContext);

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (await run("commit", { message })) setMessage("");
  }
  async function ask() {
    setAsking(true);
    setProblem(null);
    try {
      setMessage(await (session === null ? proposeMessage(folder) : askForMessage(session, folder)));
    } catch (error) {
      setProblem(problemOf(error));
    }
    setAsking(false);
  }
  return (
    <form className="stack git-commit" aria-label="Commit" onSubmit={(event) => void submit(event)}>
      <textarea
        aria-label="Commit message"
        placeholder={isAsking ? WRITING[session === null ? "model" : "agent"] : "Commit message"}
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
          Commit {count > 0 && countOf(count, "file")}
        </button>
        {(session !== null || model !== null) && (
          <button type="button" disabled={count === 0 || isAsking} onClick={() => void ask()}>
            {isAsking && <span className="spinner" aria-hidden="true" />}{" "}
            {session === null ? "Propose a message" : "Ask the agent for a message"}
          </button>
        )}
      </div>
      {session === null &&
        (model === null ? (
          <p className="quiet small-print">Open Git beside a session, and its agent can write the message.</p>
        ) : (
          <p className="quiet small-print">For a proposal, what is staged is sent to {visibleText(model)}.</p>
        ))}
    </form>
  );
}
