import { type FormEvent, useState } from "react";
import type { GitState } from "../../client/api";
import { Dialog } from "../../ui/Dialog";
import { Icon } from "../../ui/Icon";
import { visibleText } from "../../ui/visibleText";
import type { RunGit } from "./GitPage";
import { distanceText, targetOf } from "./git.logic";
import { RemoteDialog } from "./RemoteDialog";

const NEW = "\0new";

/** The branch, and what goes to and comes from its remote. */
export function BranchBar({ state, busy, run }: { state: GitState; busy: string | null; run: RunGit }) {
  const [asksName, setAsksName] = useState(false);
  const [asks, setAsks] = useState<"push" | "pull" | null>(null);
  const target = targetOf(state);
  const canPush = target !== null && state.commit !== null && (state.upstream === null || state.ahead > 0);
  return (
    <section className="card git-branch" aria-label="Branch">
      <div className="git-branch-row">
        <Icon name="branch" />
        <select
          aria-label="Branch"
          value={state.branch ?? ""}
          disabled={busy !== null}
          onChange={(event) =>
            event.target.value === NEW ? setAsksName(true) : void run("switch", { branch: event.target.value })
          }
        >
          {state.branch === null && <option value="">no branch ({state.commit?.slice(0, 7)})</option>}
          {state.branch !== null && !state.branches.includes(state.branch) && (
            <option value={state.branch}>{visibleText(state.branch)}</option>
          )}
          {state.branches.map((one) => (
            <option key={one} value={one}>
              {visibleText(one)}
            </option>
          ))}
          <option value={NEW}>New branch…</option>
        </select>
        <div className="git-branch-actions">
          <button
            type="button"
            className="small"
            disabled={busy !== null || target === null}
            onClick={() => setAsks("pull")}
          >
            {busy === "pull" ? <span className="spinner" aria-hidden="true" /> : <Icon name="down" size={16} />} Pull
            {state.behind > 0 && ` ${state.behind}`}
          </button>
          <button
            type="button"
            className="small"
            disabled={busy !== null || !canPush}
            title={target === null ? "This repository has no remote" : undefined}
            onClick={() => setAsks("push")}
          >
            {busy === "push" ? <span className="spinner" aria-hidden="true" /> : <Icon name="up" size={16} />} Push
            {state.ahead > 0 && ` ${state.ahead}`}
          </button>
        </div>
      </div>
      <p className="quiet">
        {state.unfinished !== null
          ? `A ${state.unfinished} is not finished. Ask an agent to finish it, or do it in a terminal.`
          : (distanceText(state) ??
            (state.remotes.length === 0 ? "This repository has no remote." : "This branch was not pushed yet."))}
      </p>
      {asksName && (
        <BranchDialog
          onClose={() => setAsksName(false)}
          onCreate={async (branch) => {
            setAsksName(false);
            await run("switch", { branch, is_new: true });
          }}
        />
      )}
      {asks !== null && target !== null && (
        <RemoteDialog
          action={asks}
          state={state}
          target={target}
          onClose={() => setAsks(null)}
          onConfirm={(body) => {
            setAsks(null);
            void run(asks, body);
          }}
        />
      )}
    </section>
  );
}

function BranchDialog({ onClose, onCreate }: { onClose: () => void; onCreate: (name: string) => void }) {
  const [name, setName] = useState("");
  function submit(event: FormEvent) {
    event.preventDefault();
    if (name.trim() !== "") onCreate(name.trim());
  }
  return (
    <Dialog title="New branch" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <label>
          Name
          <input value={name} maxLength={200} onChange={(event) => setName(event.target.value)} autoCapitalize="off" />
        </label>
        <div className="answers">
          <button type="submit" className="primary" disabled={name.trim() === ""}>
            Create
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
