"""What the page can do with a repository of the workspace."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from freehold.computer import Computer
from freehold.computer.contract.conventions import WORKSPACE
from freehold.errors import FreeholdError
from freehold.git.command import GROUP, WRITE_TIMEOUT, GitFolder, not_done
from freehold.git.records import (
    LOG_FORMAT,
    GitCommit,
    GitRemote,
    GitStatus,
    GitWorktree,
    find_folder,
    parse_log,
    parse_remotes,
    parse_status,
    parse_worktrees,
    show_text,
)

MAX_REPOSITORIES = 100
MAX_BRANCHES = 500
DEPTH = 4
"""How deep below the workspace repositories are searched."""
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_UNFINISHED = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
}


@dataclass(frozen=True)
class Committer:
    """Who commits where the repository names nobody."""

    name: str
    email: str


@dataclass(frozen=True)
class RepositoryState:
    """`unfinished` is an operation that waits for the owner or an agent, such as a merge with conflicts."""

    status: GitStatus
    branches: list[str]
    worktrees: list[GitWorktree]
    remotes: list[GitRemote]
    unfinished: str | None


async def find_repositories(computer: Computer) -> list[str]:
    """The folders of the workspace that are repositories or worktrees, by name."""
    found = await computer.run(
        ["/usr/bin/find", WORKSPACE, "-maxdepth", str(DEPTH), "-name", "node_modules", "-prune", "-o", "-name", ".git", "-print0", "-prune"],
        timeout=20,
        apart=GROUP,
    )  # fmt: skip
    paths = [os.fsdecode(one).removesuffix("/.git") for one in found.stdout.split(b"\0") if one]
    return sorted(folder for path in paths if (folder := find_folder(path, WORKSPACE)) is not None)[:MAX_REPOSITORIES]


class Repository:
    def __init__(self, computer: Computer, folder: str) -> None:
        self.computer = computer
        self.git = GitFolder(computer, folder)

    async def read_state(self) -> RepositoryState | None:
        """None when the folder is no repository."""
        status = await self.git.attempt(
            "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all",
            environment={"GIT_OPTIONAL_LOCKS": "0"},
        )  # fmt: skip
        if not status.ok:
            if "not a git repository" in status.words:
                return None
            raise not_done(status.words)
        branches = await self.git.run(
            "for-each-ref", f"--count={MAX_BRANCHES}", "--format=%(refname:short)", "refs/heads"
        )
        worktrees = await self.git.run("worktree", "list", "--porcelain", "-z")
        return RepositoryState(
            parse_status(status.data, is_cut=status.is_cut),
            [show_text(line) for line in branches.splitlines()],
            list(parse_worktrees(worktrees, WORKSPACE)),
            await self.read_remotes(),
            await self._find_unfinished(),
        )

    async def read_remotes(self) -> list[GitRemote]:
        found = await self.git.attempt("config", "-z", "--get-regexp", r"^remote\..*\.url$")
        return parse_remotes(found.data)

    async def _find_unfinished(self) -> str | None:
        folder = os.fsdecode((await self.git.run("rev-parse", "--absolute-git-dir")).rstrip(b"\n"))
        for name, words in _UNFINISHED.items():
            try:
                await self.computer.files.stat(f"{folder}/{name}")
            except FreeholdError:
                continue
            return words
        return None

    async def read_diff(self, file: str | None, *, staged: bool, commit: str | None) -> tuple[bytes, bool]:
        """A unified diff, and whether it was cut. Without `commit`: of the file in the folder or in the index."""
        plain = ("--no-ext-diff", "--no-textconv", "--no-color")
        paths = () if file is None else ("--", file)
        if commit is not None:
            found = await self.git.attempt("show", "--format=", "--first-parent", "-m", *plain, commit, *paths)
        else:
            found = await self.git.attempt("diff", *plain, *(("--cached",) if staged else ()), *paths)
            if found.ok and not found.data and not staged and file is not None:
                # One that git does not know yet: compared with nothing. It says 1 when there is a difference.
                found = await self.git.attempt("diff", *plain, "--no-index", "--", "/dev/null", file)
                return found.data, found.is_cut
        if not found.ok:
            raise not_done(found.words)
        return found.data, found.is_cut

    async def stage(self, files: Sequence[str], *, staged: bool) -> None:
        names = b"\0".join(os.fsencode(file) for file in files)
        how = ("add", "--all") if staged else ("reset", "-q")
        await self.git.run(*how, "--pathspec-from-file=-", "--pathspec-file-nul", stdin=names)

    async def stage_hunk(self, patch: bytes, *, staged: bool) -> None:
        direction = () if staged else ("--reverse",)
        await self.git.run("apply", "--cached", "--whitespace=nowarn", *direction, "-", stdin=patch)

    async def commit(self, message: str, committer: Committer) -> str:
        """The id of the new commit."""
        named = await self.git.attempt("config", "user.email")
        who: Mapping[str, str | None] = (
            {}
            if named.ok
            else {
                "GIT_AUTHOR_NAME": committer.name,
                "GIT_AUTHOR_EMAIL": committer.email,
                "GIT_COMMITTER_NAME": committer.name,
                "GIT_COMMITTER_EMAIL": committer.email,
            }
        )
        done = await self.git.attempt(
            "commit", "--quiet", "--cleanup=whitespace", "--file=-",
            stdin=message.encode(), timeout=WRITE_TIMEOUT, environment=who,
        )  # fmt: skip
        if not done.ok:
            raise not_done(done.words)
        return await self.find_commit("HEAD")

    async def find_commit(self, name: str) -> str:
        return show_text((await self.git.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")).strip())

    async def read_log(self, *, skip: int, limit: int) -> list[GitCommit]:
        """The newest first; empty before the first commit."""
        found = await self.git.attempt(
            "log", "-z", f"--format={LOG_FORMAT}", f"--skip={skip}", f"--max-count={limit}", "--decorate=short"
        )
        return list(parse_log(found.data)) if found.ok else []

    async def switch(self, branch: str, *, is_new: bool) -> None:
        await self.git.run("switch", *(("-c",) if is_new else ()), branch)

    async def add_worktree(self, branch: str, folder: str, *, is_new: bool) -> None:
        """`folder` is below the workspace. In a repository that is the workspace itself, git is told to ignore it."""
        place = f"{WORKSPACE}/{folder}"
        await self.git.run("worktree", "add", *(("-b", branch, place) if is_new else (place, branch)))
        if place.startswith(f"{self.git.path}/"):
            await self._ignore(f"/{place.removeprefix(f'{self.git.path}/')}/")

    async def _ignore(self, pattern: str) -> None:
        common = os.fsdecode(
            (await self.git.run("rev-parse", "--path-format=absolute", "--git-common-dir")).rstrip(b"\n")
        )
        path = f"{common}/info/exclude"
        try:
            held = await self.computer.files.read(path)
        except FreeholdError:
            held = b""
        if os.fsencode(pattern) not in held.splitlines():
            await self.computer.files.mkdir(f"{common}/info", parents=True)
            await self.computer.files.write(
                path, held.rstrip(b"\n") + b"\n" * bool(held) + os.fsencode(pattern) + b"\n"
            )

    async def remove_worktree(self, folder: str) -> None:
        """Raises `git.not-done` when it has changes."""
        await self.git.run("worktree", "remove", f"{WORKSPACE}/{folder}")
