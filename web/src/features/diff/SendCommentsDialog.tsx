import { type FormEvent, useRef, useState } from "react";
import type { SessionInfo, SessionPage } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { useResource } from "../../data/resource";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { sessionTitle } from "../session-list/sessionList.logic";
import { type Comment, pathInside, promptOf } from "./diff.logic";

const NEW = "new";

/** Sends the comments to an agent as one prompt. `onSent` gets the session that received them. */
export function SendCommentsDialog({
  comments,
  approved,
  session,
  onClose,
  onSent,
}: {
  comments: readonly Comment[];
  /** The paths of the files that the owner approved. */
  approved: readonly string[];
  session: string | null;
  onClose: () => void;
  onSent: (session: string) => void;
}) {
  const { value, problem: unlisted } = useResource<SessionPage>("/v1/sessions?limit=50");
  const [chosen, setChosen] = useState<string | null>(null);
  const [words, setWords] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  // Every try has the same key, so that a lost reply does not cause a second prompt.
  const key = useRef(crypto.randomUUID());
  const made = useRef<string | null>(null);
  const sessions = value?.sessions.filter((one) => !one.archived) ?? [];
  const to = chosen ?? (sessions.some((one) => one.id === session) ? session : null) ?? NEW;

  async function send(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      if (to === NEW) made.current ??= (await request<SessionInfo>("/v1/sessions", { method: "POST", body: {} })).id;
      const id = to === NEW ? (made.current ?? "") : to;
      await request(`/v1/sessions/${encodeURIComponent(id)}/prompt`, {
        method: "POST",
        body: { text: promptOf(comments, words, approved), key: key.current, when: "queue" },
      });
      onSent(id);
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  }

  return (
    <Dialog
      title={
        comments.length === 0
          ? "Send your review"
          : comments.length === 1
            ? "Send this comment"
            : `Send ${comments.length} comments`
      }
      onClose={onClose}
      wide
    >
      <form className="stack diff-send-form" onSubmit={(event) => void send(event)}>
        {(problem ?? unlisted) && <Notice problem={(problem ?? unlisted) as Problem} />}
        <ul className="steps">
          {comments.map((one) => (
            <li key={`${one.path} ${one.side} ${one.line}`}>
              <code className="path">
                {pathInside(one.path)}:{one.line}
              </code>
              <span className="diff-send-text">{one.text}</span>
            </li>
          ))}
        </ul>
        {approved.length > 0 && (
          <p className="quiet">
            {approved.length === 1 ? "1 approved file" : `${approved.length} approved files`}: the agent is told to
            leave {approved.length === 1 ? "it" : "them"} as {approved.length === 1 ? "it is" : "they are"}.
          </p>
        )}
        <label>
          To
          <select value={to} onChange={(event) => setChosen(event.target.value)}>
            <option value={NEW}>A new session</option>
            {sessions.map((one) => (
              <option key={one.id} value={one.id}>
                {sessionTitle(one)} · {one.agent}
              </option>
            ))}
          </select>
        </label>
        <label>
          Instructions
          <textarea
            rows={2}
            placeholder="Please address these comments on your changes"
            value={words}
            onChange={(event) => setWords(event.target.value)}
          />
        </label>
        <div className="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button className="primary" disabled={busy || (value === null && unlisted === null)}>
            {busy ? "Sending…" : "Send"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
