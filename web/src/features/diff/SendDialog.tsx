import { useRef, useState, type FormEvent } from "react";
import type { SessionPage, SessionView } from "../../client/api";
import { problemOf, request, type Problem } from "../../client/http";
import { useAnswer } from "../../ui/answers";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { insidePath, promptOf, type Comment } from "./diff.logic";

const NEW = "new";

/** Sends the comments to an agent as one prompt; `onSent` gets the session they went to. */
export function SendDialog({ comments, session, onClose, onSent }: { comments: readonly Comment[]; session: string | null; onClose: () => void; onSent: (session: string) => void }) {
  const { value, problem: unlisted } = useAnswer<SessionPage>("/v1/sessions?limit=50");
  const [chosen, setChosen] = useState<string | null>(null);
  const [words, setWords] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  // The same key for every try: an answer that was lost on the way does not become a second prompt.
  const key = useRef(crypto.randomUUID());
  const made = useRef<string | null>(null);
  const sessions = value?.sessions.filter((one) => !one.archived) ?? [];
  const to = chosen ?? (sessions.some((one) => one.id === session) ? session : null) ?? NEW;

  async function send(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      if (to === NEW) made.current ??= (await request<SessionView>("/v1/sessions", { method: "POST", body: {} })).id;
      const id = to === NEW ? (made.current ?? "") : to;
      await request(`/v1/sessions/${encodeURIComponent(id)}/prompt`, { method: "POST", body: { text: promptOf(comments, words), key: key.current, when: "queue" } });
      onSent(id);
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  }

  return (
    <Dialog title={comments.length === 1 ? "Send this comment" : `Send ${comments.length} comments`} onClose={onClose} wide>
      <form className="stack send-comments" onSubmit={(event) => void send(event)}>
        {(problem ?? unlisted) && <Notice problem={(problem ?? unlisted) as Problem} />}
        <ul className="steps">
          {comments.map((one) => (
            <li key={`${one.path} ${one.side} ${one.line}`}>
              <code className="path">
                {insidePath(one.path)}:{one.line}
              </code>
              <span className="send-text">{one.text}</span>
            </li>
          ))}
        </ul>
        <label>
          To
          <select value={to} onChange={(event) => setChosen(event.target.value)}>
            <option value={NEW}>A new session</option>
            {sessions.map((one) => (
              <option key={one.id} value={one.id}>
                {one.title || "New session"} · {one.agent}
              </option>
            ))}
          </select>
        </label>
        <label>
          What to do with them
          <textarea rows={2} placeholder="Please look at these comments on what was changed" value={words} onChange={(event) => setWords(event.target.value)} />
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
