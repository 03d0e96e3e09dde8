import { type FormEvent, useState } from "react";
import type { GitState, GitWorktree, SessionInfo } from "../../client/api";
import { request } from "../../client/http";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { go, sessionPath } from "../../ui/route";
import { useToasts } from "../../ui/Toasts";
import { visibleText } from "../../ui/visibleText";
import { useSessionList } from "../session-list/SessionListProvider";
import type { RunGit } from "./GitPage";
import { worktreePlace } from "./git.logic";

interface WorktreesProps {
  state: GitState;
  folder: string;
  busy: boolean;
  run: RunGit;
}

/** Branches that are checked out in folders of their own, so that two sessions can work on two of them. */
export function Worktrees({ state, folder, busy, run }: WorktreesProps) {
  const [branch, setBranch] = useState("");
  const others = state.worktrees.filter((one) => one.folder !== folder);
  const name = branch.trim();

  async function add(event: FormEvent) {
    event.preventDefault();
    const is_new = !state.branches.includes(name);
    if (await run("worktrees", { branch: name, is_new, place: worktreePlace(folder, name) })) setBranch("");
  }
  return (
    <section aria-labelledby="git-worktrees">
      <h2 id="git-worktrees">Worktrees</h2>
      <p className="quiet git-note">
        A worktree is a second folder with another branch. Let one session work in each, and they do not disturb each
        other.
      </p>
      {others.length > 0 && (
        <ul className="rows">
          {others.map((one) => (
            <li key={`${one.folder} ${one.commit}`}>
              <WorktreeRow
                tree={one}
                busy={busy}
                onRemove={() => void run("worktrees/remove", { place: one.folder })}
              />
            </li>
          ))}
        </ul>
      )}
      {state.commit !== null && (
        <form className="line-form git-add" onSubmit={(event) => void add(event)}>
          <input
            aria-label="Branch of the new worktree"
            placeholder="Branch: a new one, or one that exists"
            list="git-branches"
            value={branch}
            maxLength={200}
            autoCapitalize="off"
            onChange={(event) => setBranch(event.target.value)}
          />
          <datalist id="git-branches">
            {state.branches.map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
          <button type="submit" disabled={busy || name === ""}>
            Add worktree
          </button>
        </form>
      )}
    </section>
  );
}

function WorktreeRow({ tree, busy, onRemove }: { tree: GitWorktree; busy: boolean; onRemove: () => void }) {
  const toasts = useToasts();
  const { receive } = useSessionList();
  const { folder, branch } = tree;
  const title = visibleText(branch ?? tree.commit.slice(0, 7));

  async function start() {
    if (folder === null) return;
    try {
      const session = await request<SessionInfo>("/v1/sessions", {
        method: "POST",
        body: { title: title.slice(0, 200), folder },
      });
      receive(session);
      go(sessionPath(session.id));
    } catch (error) {
      toasts.failed(error);
    }
  }
  return (
    <>
      <div className="grow">
        <strong>{title}</strong>
        <p className="quiet">{folder === null ? "outside the workspace" : visibleText(folder)}</p>
      </div>
      {folder !== null && folder !== "." && (
        <>
          <button type="button" className="small" onClick={() => void start()}>
            Start a session there
          </button>
          <ConfirmButton
            label="Remove"
            confirmLabel="Remove the folder"
            spoken={`Remove the worktree ${title}`}
            disabled={busy}
            onConfirm={onRemove}
          />
        </>
      )}
    </>
  );
}
