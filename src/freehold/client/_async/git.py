"""The repositories of the workspace: `home.git`."""

from collections.abc import Mapping, Sequence
from typing import Literal

from freehold.client._async.connection import AsyncConnection
from freehold.client.git_models import GitDiffText, GitHead, GitLogPage, GitMessage, RepositoryFolders, RepositoryInfo

COMMAND_TIMEOUT = 120.0
"""Seconds: hooks of the repository run, and pushing and pulling use the network."""


class AsyncGit:
    """`folder` is below the workspace; `.` is the workspace itself. The token needs the scope `terminal`."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def repositories(self) -> tuple[str, ...]:
        """The folders of the workspace that are repositories or worktrees."""
        return (await self._connection.get("/v1/git/repositories", RepositoryFolders)).folders

    async def state(self, folder: str = ".") -> RepositoryInfo:
        """The branch, the changed files, the branches, the worktrees and the remotes of a repository."""
        return await self._connection.get("/v1/git/state", RepositoryInfo, {"folder": folder})

    async def diff(
        self,
        folder: str = ".",
        *,
        file: str | None = None,
        side: Literal["worktree", "index"] = "worktree",
        commit: str | None = None,
    ) -> GitDiffText:
        """What changed in a file, or in a commit. `side`: what is not staged, or what is."""
        query = {"folder": folder, "file": file, "side": side, "commit": commit}
        return await self._connection.get("/v1/git/diff", GitDiffText, query)

    async def log(self, folder: str = ".", *, skip: int = 0, limit: int = 30) -> GitLogPage:
        """The commits before HEAD, the newest first."""
        return await self._connection.get("/v1/git/log", GitLogPage, {"folder": folder, "skip": skip, "limit": limit})

    async def stage(self, folder: str, files: Sequence[str], *, staged: bool = True) -> None:
        """Stage files, or take them out of the index."""
        await self._post("/v1/git/stage", {"folder": folder, "files": list(files), "staged": staged})

    async def stage_hunk(self, folder: str, patch: str, *, staged: bool = True) -> None:
        """Stage a part of one file's diff, with its head, or take it out of the index."""
        await self._post("/v1/git/stage-hunk", {"folder": folder, "patch": patch, "staged": staged})

    async def propose_message(self, folder: str) -> str:
        """A message for what is staged, by a model that is cheap or on this machine. Needs the scope `admin`."""
        path = "/v1/git/message"
        return (await self._connection.post(path, GitMessage, {"folder": folder}, timeout=COMMAND_TIMEOUT)).message

    async def commit(self, folder: str, message: str) -> GitHead:
        """Commit what is staged. Hooks of the repository run, inside the computer."""
        return await self._post("/v1/git/commit", {"folder": folder, "message": message})

    async def switch(self, folder: str, branch: str, *, is_new: bool = False) -> None:
        """Switch to a branch, or make a new one."""
        await self._post("/v1/git/switch", {"folder": folder, "branch": branch, "is_new": is_new})

    async def add_worktree(self, folder: str, branch: str, place: str, *, is_new: bool = False) -> None:
        """Check out a branch in a folder of its own: `place`, below the workspace."""
        await self._post("/v1/git/worktrees", {"folder": folder, "branch": branch, "place": place, "is_new": is_new})

    async def remove_worktree(self, folder: str, place: str) -> None:
        """Remove the folder of a worktree. One with changes is kept."""
        await self._post("/v1/git/worktrees/remove", {"folder": folder, "place": place})

    async def push(self, folder: str, remote: str, url: str, branch: str, commit: str) -> GitHead:
        """Send a commit to a branch of a remote. Refused when its address is not `url`. Needs the scope `admin`."""
        body = {"folder": folder, "remote": remote, "url": url, "branch": branch, "commit": commit}
        return await self._post("/v1/git/push", body)

    async def pull(self, folder: str, remote: str, url: str, branch: str) -> GitHead:
        """Move the branch forward to what a remote has. Needs the scope `admin`."""
        return await self._post("/v1/git/pull", {"folder": folder, "remote": remote, "url": url, "branch": branch})

    async def _post(self, path: str, body: Mapping[str, object]) -> GitHead:
        return await self._connection.post(path, GitHead, body, timeout=COMMAND_TIMEOUT)
