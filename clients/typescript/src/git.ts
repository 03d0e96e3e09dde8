/** The repositories of the workspace: `home.git`. */

import type { GitDiff, GitDone, GitLog, GitMessage, GitRepositories, GitState } from "./api.ts";
import type { Link } from "./freehold.ts";

export interface GitDiffOptions {
  file?: string;
  /** What is not staged, or what is. */
  side?: "worktree" | "index";
  commit?: string;
}

/** `folder` is below the workspace; `.` is the workspace itself. The token needs the scope `terminal`. */
export class Git {
  private readonly link: Link;

  constructor(link: Link) {
    this.link = link;
  }

  /** The folders of the workspace that are repositories or worktrees. */
  async repositories(): Promise<string[]> {
    return (await this.link.connection.get<GitRepositories>("/v1/git/repositories")).folders;
  }

  /** The branch, the changed files, the branches, the worktrees and the remotes of a repository. */
  state(folder = "."): Promise<GitState> {
    return this.link.connection.get("/v1/git/state", { folder });
  }

  /** What changed in a file, or in a commit. */
  diff(folder = ".", { file, side = "worktree", commit }: GitDiffOptions = {}): Promise<GitDiff> {
    return this.link.connection.get("/v1/git/diff", { folder, file, side, commit });
  }

  /** The commits before HEAD, the newest first. */
  log(folder = ".", { skip = 0, limit = 30 }: { skip?: number; limit?: number } = {}): Promise<GitLog> {
    return this.link.connection.get("/v1/git/log", { folder, skip, limit });
  }

  /** Stage files, or take them out of the index. */
  async stage(folder: string, files: readonly string[], { staged = true }: { staged?: boolean } = {}): Promise<void> {
    await this.link.connection.post<GitDone>("/v1/git/stage", { folder, files, staged });
  }

  /** Stage a part of one file's diff, with its head, or take it out of the index. */
  async stageHunk(folder: string, patch: string, { staged = true }: { staged?: boolean } = {}): Promise<void> {
    await this.link.connection.post<GitDone>("/v1/git/stage-hunk", { folder, patch, staged });
  }

  /** A message for what is staged, by a model that is cheap or on this machine. Needs the scope `admin`. */
  async proposeMessage(folder: string): Promise<string> {
    return (await this.link.connection.post<GitMessage>("/v1/git/message", { folder })).message;
  }

  /** Commit what is staged. Hooks of the repository run, inside the computer. */
  commit(folder: string, message: string): Promise<GitDone> {
    return this.link.connection.post("/v1/git/commit", { folder, message });
  }

  /** Switch to a branch, or make a new one. */
  async switch(folder: string, branch: string, { isNew = false }: { isNew?: boolean } = {}): Promise<void> {
    await this.link.connection.post<GitDone>("/v1/git/switch", { folder, branch, is_new: isNew });
  }

  /** Check out a branch in a folder of its own: `place`, below the workspace. */
  async addWorktree(
    folder: string,
    branch: string,
    place: string,
    { isNew = false }: { isNew?: boolean } = {},
  ): Promise<void> {
    await this.link.connection.post<GitDone>("/v1/git/worktrees", { folder, branch, place, is_new: isNew });
  }

  /** Remove the folder of a worktree. One with changes is kept. */
  async removeWorktree(folder: string, place: string): Promise<void> {
    await this.link.connection.post<GitDone>("/v1/git/worktrees/remove", { folder, place });
  }

  /** Send a commit to a branch of a remote. Refused when its address is not `url`. Needs the scope `admin`. */
  push(folder: string, remote: string, url: string, branch: string, commit: string): Promise<GitDone> {
    return this.link.connection.post("/v1/git/push", { folder, remote, url, branch, commit });
  }

  /** Move the branch forward to what a remote has. Needs the scope `admin`. */
  pull(folder: string, remote: string, url: string, branch: string): Promise<GitDone> {
    return this.link.connection.post("/v1/git/pull", { folder, remote, url, branch });
  }
}
