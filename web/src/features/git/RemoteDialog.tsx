import { type FormEvent, useState } from "react";
import type { GitState } from "../../client/api";
import { type Problem, problemOf, request } from "../../client/http";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { visibleText } from "../../ui/visibleText";
import type { Target } from "./git.logic";

interface RemoteDialogProps {
  action: "push" | "pull";
  state: GitState;
  target: Target;
  onClose: () => void;
  onConfirm: (body: Record<string, unknown>) => void;
}

/** Shows where a push or pull goes before it does. A token that is typed goes into the vault, and never into the computer. */
export function RemoteDialog({ action, state, target, onClose, onConfirm }: RemoteDialogProps) {
  const { remote, branch } = target;
  const [typed, setTyped] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const body = { remote: remote.name, url: remote.url, branch };

  async function submit(event: FormEvent) {
    event.preventDefault();
    try {
      if (typed.trim() !== "" && remote.secret !== null)
        await request(`/v1/secrets/${encodeURIComponent(remote.secret)}`, {
          method: "PUT",
          body: { value: typed.trim() },
        });
      onConfirm(action === "push" ? { ...body, commit: state.commit } : body);
    } catch (error) {
      setProblem(problemOf(error));
    }
  }
  return (
    <Dialog title={action === "push" ? "Push" : "Pull"} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void submit(event)}>
        <p>
          {action === "push" ? "Send " : "Get "}
          <strong>{visibleText(branch)}</strong>
          {action === "push" ? " to " : " from "}
          <code className="git-url">{visibleText(remote.url)}</code>
        </p>
        {action === "push" && state.commit !== null && (
          <p className="quiet">
            Commit {state.commit.slice(0, 10)}
            {state.ahead > 0 && `, ${state.ahead} new for this remote`}.
          </p>
        )}
        {remote.secret === null ? (
          <p className="quiet">
            An address that begins with https:// can use a token of yours. This one is reached by the rules of the
            network.
          </p>
        ) : (
          <label>
            {remote.has_credentials ? "Another token (optional)" : "Token of this host"}
            <input
              type="password"
              value={typed}
              autoComplete="off"
              maxLength={4000}
              onChange={(event) => setTyped(event.target.value)}
            />
            <span className="quiet small-print">
              {remote.has_credentials ? `The secret ${remote.secret} is used. ` : ""}
              It is stored in the vault and is never inside the computer. A user name goes before it: name:token.
            </span>
          </label>
        )}
        {problem && <Notice problem={problem} />}
        <div className="answers">
          <button type="submit" className="primary">
            {action === "push" ? "Push" : "Pull"}
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
