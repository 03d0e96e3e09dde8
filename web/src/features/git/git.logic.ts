import type { GitFile, GitRemote, GitState, SessionEvent } from "../../client/api";

export type Side = "worktree" | "index";

/** The files of one side: what is staged, or what is not. A file can be on both. */
export function filesOn(side: Side, files: readonly GitFile[]): GitFile[] {
  return files.filter((file) => (side === "index" ? file.staged : file.unstaged) !== "");
}

/** The paths that are staged or taken out together: of a file that was renamed on this side, both names. */
export function pathsOf(side: Side, files: readonly GitFile[]): string[] {
  return files.flatMap(({ path, old_path, staged, unstaged }) =>
    old_path !== null && (side === "index" ? staged : unstaged) === "R" ? [old_path, path] : [path],
  );
}

const WORDS: Record<string, string> = {
  M: "changed",
  T: "changed",
  A: "added",
  D: "deleted",
  R: "renamed",
  C: "copied",
  "?": "new",
  U: "conflict",
};

export function changeWord(file: GitFile, side: Side): string {
  if (file.has_conflict) return "conflict";
  return WORDS[side === "index" ? file.staged : file.unstaged] ?? "changed";
}

export interface SplitDiff {
  /** What precedes the hunks, and is part of every patch. */
  head: string;
  hunks: string[];
}

/** The parts of the diff of one file. */
export function splitDiff(text: string): SplitDiff {
  const at = text.search(/^@@ /m);
  if (at < 0) return { head: text, hunks: [] };
  const hunks: string[] = [];
  for (const line of text.slice(at).split(/(?<=\n)/)) {
    if (line.startsWith("@@ ")) hunks.push(line);
    else hunks[hunks.length - 1] += line;
  }
  return { head: text.slice(0, at), hunks };
}

/** The diffs of the files of a commit, each with the path that it is about. */
export function splitFiles(text: string): { path: string; text: string }[] {
  return text
    .split(/^(?=diff --git )/m)
    .filter((part) => part.startsWith("diff "))
    .map((part) => ({ path: pathIn(part), text: part }));
}

function pathIn(part: string): string {
  const named = /^\+\+\+ (?:b\/)?(.*)$/m.exec(part)?.[1] ?? "/dev/null";
  if (named !== "/dev/null") return named;
  return /^--- (?:a\/)?(.*)$/m.exec(part)?.[1] ?? /^diff --git a\/(.*) b\//.exec(part)?.[1] ?? "a file";
}

export interface Target {
  remote: GitRemote;
  /** At the remote. */
  branch: string;
}

/** Where push and pull go: to the upstream, else to a branch of the same name at the first remote. */
export function targetOf(state: GitState): Target | null {
  if (state.branch === null) return null;
  for (const remote of state.remotes) {
    if (state.upstream?.startsWith(`${remote.name}/`))
      return { remote, branch: state.upstream.slice(remote.name.length + 1) };
  }
  const remote = state.remotes.find((one) => one.name === "origin") ?? state.remotes[0];
  return remote === undefined ? null : { remote, branch: state.branch };
}

/** A folder for the worktree of a branch: beside the repository, or in `.worktrees` when that is the workspace itself. */
export function worktreePlace(folder: string, branch: string): string {
  const name = branch.replace(/[^\p{L}\p{N}._-]+/gu, "-");
  return folder === "." ? `.worktrees/${name}` : `${folder}-${name}`;
}

/** The place of a branch beside its upstream, in words. */
export function distanceText(state: Pick<GitState, "upstream" | "ahead" | "behind">): string | null {
  if (state.upstream === null) return null;
  if (state.ahead === 0 && state.behind === 0) return `up to date with ${state.upstream}`;
  const parts = [state.ahead > 0 && `${state.ahead} to push`, state.behind > 0 && `${state.behind} to pull`];
  return `${parts.filter(Boolean).join(", ")} (${state.upstream})`;
}

/** What an agent is asked for a message. */
export function messagePrompt(folder: string): string {
  const place = folder === "." ? "" : ` in the folder ${folder}`;
  return (
    `Read the staged changes with \`git diff --cached\`${place} and propose a commit message: a short line, then a ` +
    "blank line and the reason if it is not obvious. Answer with the message only. Do not commit."
  );
}

/** The last words of the agent in a turn that has ended, without a frame of code; null while it works. */
export function messageIn(events: readonly SessionEvent[], turn: number): string | null {
  const own = events.filter((event) => event.turn === turn);
  if (!own.some((event) => event.kind === "turn.ended")) return null;
  const said = own.filter((event) => event.kind === "message").map((event) => String(event.data["text"] ?? ""));
  const text = (said.at(-1) ?? "").trim();
  return /^```\w*\n([\s\S]*?)\n?```$/.exec(text)?.[1]?.trim() ?? text;
}
