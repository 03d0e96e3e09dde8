"""`/v1/git`: the repositories of the workspace. Every command of git runs inside the computer.

They need the scope `terminal`: hooks and filters of a repository are commands, and whoever writes files can write them.
"""

import asyncio
import os
from typing import Annotated

from fastapi import Query, Request

from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.history_notes import note_file_change
from freehold.gateway.inputs import DIGITS, MAX_PATH_TEXT, read_path
from freehold.gateway.routing import get, post
from freehold.git.bodies import (
    AddWorktreeBody,
    CreateCommitBody,
    GitDiffBody,
    GitDoneBody,
    GitLogBody,
    GitMessageBody,
    GitRepositoriesBody,
    GitSide,
    GitStateBody,
    ProposeMessageBody,
    PullBranchBody,
    PushBranchBody,
    RemoveWorktreeBody,
    StageFilesBody,
    StageHunkBody,
    SwitchBranchBody,
    describe_commit,
    describe_state,
)
from freehold.git.commit_message import MessageWriter
from freehold.git.repository import Committer, Repository, find_repositories
from freehold.git.section import GitSection
from freehold.git.transfer import GitTransfer

MAX_DIFF = 1_000_000
"""Bytes of a diff that are answered."""
MAX_LOG = 100

Folder = Annotated[
    str, Query(max_length=MAX_PATH_TEXT, description="Below the workspace; `.` is the workspace itself.")
]
Commit = Annotated[str | None, Query(max_length=64, pattern="^[0-9a-f]{40}([0-9a-f]{24})?$")]


class GitRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services
        self._writer = MessageWriter(context.services.models, lambda: context.services.manifest)

    def _open(self, folder: str) -> Repository:
        return Repository(self._services.computer, _below_workspace(folder))

    @get("/v1/git/repositories", scope="terminal")
    async def list_repositories(self) -> GitRepositoriesBody:
        """The repositories of the workspace."""
        return GitRepositoriesBody(folders=await find_repositories(self._services.computer))

    @get("/v1/git/state", scope="terminal")
    async def git_state(self, folder: Folder = ".") -> GitStateBody:
        """The branch, the changed files, the branches, the worktrees and the remotes of a repository."""
        state = await self._open(folder).read_state()
        if state is None:
            raise FreeholdError(
                "git.missing", f"{folder} is not a git repository", hint="To make it one: git init, in a terminal"
            )
        secrets = await asyncio.to_thread(self._services.vault.list)
        writer = await self._writer.find_model()
        name = None if writer is None else f"{writer[0].name}/{writer[1]}"
        return describe_state(folder, state, frozenset(one.name for one in secrets), name)

    @get("/v1/git/diff", scope="terminal")
    async def git_diff(
        self,
        folder: Folder = ".",
        file: Annotated[str | None, Query(max_length=MAX_PATH_TEXT)] = None,
        side: Annotated[GitSide, Query(description="What is not staged, or what is.")] = "worktree",
        commit: Commit = None,
    ) -> GitDiffBody:
        """What changed in a file, or in a commit."""
        name = None if file is None else os.fsdecode(read_path(file))
        data, is_cut = await self._open(folder).read_diff(name, staged=side == "index", commit=commit)
        is_cut = is_cut or len(data) > MAX_DIFF
        text = data[:MAX_DIFF].decode(errors="replace")
        return GitDiffBody(text=text, is_exact=not is_cut and text.encode() == data)

    @get("/v1/git/log", scope="terminal")
    async def git_log(
        self,
        folder: Folder = ".",
        skip: Annotated[int, Query(ge=0, le=1_000_000), DIGITS] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_LOG), DIGITS] = 30,
    ) -> GitLogBody:
        """The commits before HEAD, the newest first."""
        found = await self._open(folder).read_log(skip=skip, limit=limit + 1)
        commits = [describe_commit(one) for one in found[:limit]]
        return GitLogBody(commits=commits, next=skip + limit if len(found) > limit else None)

    @post("/v1/git/stage", scope="terminal")
    async def stage_files(self, body: StageFilesBody, request: Request) -> GitDoneBody:
        """Stage files, or take them out of the index."""
        files = [os.fsdecode(read_path(file)) for file in body.files]
        async with note_file_change(self._services, request, "staged files" if body.staged else "unstaged files"):
            await self._open(body.folder).stage(files, staged=body.staged)
        return GitDoneBody(commit=None)

    @post("/v1/git/stage-hunk", scope="terminal")
    async def stage_hunk(self, body: StageHunkBody, request: Request) -> GitDoneBody:
        """Stage a part of a diff, or take it out of the index."""
        async with note_file_change(self._services, request, "staged a change"):
            await self._open(body.folder).stage_hunk(body.patch.encode(), staged=body.staged)
        return GitDoneBody(commit=None)

    @post("/v1/git/message", scope="admin")
    async def propose_message(self, body: ProposeMessageBody) -> GitMessageBody:
        """A message for what is staged, written by a model that is cheap or on this machine. It reads the changes."""
        data, _ = await self._open(body.folder).read_diff(None, staged=True, commit=None)
        if not data:
            raise FreeholdError("git.nothing-staged", "Nothing is staged", hint="Stage what the commit is to have")
        return GitMessageBody(message=await self._writer.write(data.decode(errors="replace")))

    @post("/v1/git/commit", scope="terminal")
    async def create_commit(self, body: CreateCommitBody, request: Request) -> GitDoneBody:
        """Commit what is staged. Hooks of the repository run, inside the computer."""
        async with note_file_change(self._services, request, f"committed: {body.message.splitlines()[0]}"):
            commit = await self._open(body.folder).commit(body.message, self._committer())
        return GitDoneBody(commit=commit)

    def _committer(self) -> Committer:
        manifest = self._services.manifest
        section = manifest.section(GitSection)
        return Committer(section.name or manifest.owner.handle or "Owner", section.email or "owner@freehold.localhost")

    @post("/v1/git/switch", scope="terminal")
    async def switch_branch(self, body: SwitchBranchBody, request: Request) -> GitDoneBody:
        """Switch to a branch, or make a new one."""
        repository = self._open(body.folder)
        async with note_file_change(self._services, request, f"switched to the branch {body.branch}"):
            await repository.switch(body.branch, is_new=body.is_new)
        return GitDoneBody(commit=None)

    @post("/v1/git/worktrees", scope="terminal")
    async def add_worktree(self, body: AddWorktreeBody, request: Request) -> GitDoneBody:
        """Check out a branch in a folder of its own, so that two sessions can work on two branches."""
        repository = self._open(body.folder)
        async with note_file_change(self._services, request, f"made the worktree {body.place}"):
            await repository.add_worktree(body.branch, _below_workspace(body.place), is_new=body.is_new)
        return GitDoneBody(commit=None)

    @post("/v1/git/worktrees/remove", scope="terminal")
    async def remove_worktree(self, body: RemoveWorktreeBody, request: Request) -> GitDoneBody:
        """Remove the folder of a worktree. One with changes is kept."""
        async with note_file_change(self._services, request, f"removed the worktree {body.place}"):
            await self._open(body.folder).remove_worktree(_below_workspace(body.place))
        return GitDoneBody(commit=None)

    @post("/v1/git/push", scope="admin")
    async def push_branch(self, body: PushBranchBody, request: Request) -> GitDoneBody:
        """Send a commit to a branch of a remote, with the credentials that the vault has for its host."""
        transfer = GitTransfer(self._open(body.folder), self._services.vault, body.remote, body.url)
        async with note_file_change(self._services, request, f"pushed {body.branch} to {body.remote}"):
            await transfer.push(body.commit, body.branch)
        await asyncio.to_thread(
            self._services.timeline.append,
            "git.pushed",
            {"url": body.url, "branch": body.branch, "commit": body.commit},
            who="owner",
        )
        return GitDoneBody(commit=body.commit)

    @post("/v1/git/pull", scope="admin")
    async def pull_branch(self, body: PullBranchBody, request: Request) -> GitDoneBody:
        """Move the branch forward to what a remote has. What cannot be moved forward is left as it is."""
        transfer = GitTransfer(self._open(body.folder), self._services.vault, body.remote, body.url)
        async with note_file_change(self._services, request, f"pulled {body.branch} from {body.remote}"):
            return GitDoneBody(commit=await transfer.pull(body.branch))


def _below_workspace(folder: str) -> str:
    """Raises `files.bad-path` for a path that leaves the workspace."""
    path = os.fsdecode(read_path(folder))
    if path.startswith(("/", "-")) or ".." in path.split("/"):
        raise FreeholdError("files.bad-path", f"{folder!a:.100} is not a folder below the workspace")
    return path
