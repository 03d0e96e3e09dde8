"""Reads what git prints for programs. Agents write repositories, so nothing here trusts the number or size of values."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from freehold.agents.visible_text import make_visible
from freehold.history.names import show_name

MAX_FILES = 2_000
"""Files of one status that are shown."""
_AHEAD = re.compile(rb"\+(\d{1,9}) -(\d{1,9})")


@dataclass(frozen=True)
class GitChange:
    """`staged` and `unstaged` are git's letters, empty for no change; `?` is a file that git does not know."""

    path: str
    staged: str
    unstaged: str
    old_path: str | None = None
    has_conflict: bool = False


@dataclass
class GitStatus:
    """`branch` is None when HEAD is no branch; `commit` is None before the first commit."""

    commit: str | None = None
    branch: str | None = None
    upstream: str | None = None
    ahead: int = 0
    behind: int = 0
    files: list[GitChange] = field(default_factory=list)
    is_cut: bool = False


_FIELDS = {b"1": 7, b"2": 8, b"u": 9}
"""How many fields stand before the name: of a change, of one with a new name, of one in conflict."""


def parse_status(data: bytes, *, is_cut: bool) -> GitStatus:
    """The output of `git status --porcelain=v2 --branch -z`."""
    found = GitStatus(is_cut=is_cut)
    parts = iter(data.split(b"\0")[:-1])
    for part in parts:
        kind, _, rest = part.partition(b" ")
        if kind == b"#":
            _read_head(found, rest)
        elif len(found.files) >= MAX_FILES:
            found.is_cut = True
            break
        elif kind == b"?":
            found.files.append(GitChange(show_name(rest), "", "?"))
        elif kind in _FIELDS:
            fields = rest.split(b" ", _FIELDS[kind])
            if len(fields) <= _FIELDS[kind]:
                continue  # the last one of an output that is cut
            if kind == b"u":
                found.files.append(GitChange(show_name(fields[-1]), "", "U", has_conflict=True))
            else:
                old = next(parts, b"") if kind == b"2" else None
                found.files.append(_changed(fields[0], fields[-1], old=old))
    return found


def _read_head(found: GitStatus, line: bytes) -> None:
    name, _, value = line.partition(b" ")
    match name:
        case b"branch.oid":
            found.commit = None if value == b"(initial)" else value.decode(errors="replace")
        case b"branch.head":
            found.branch = None if value == b"(detached)" else show_text(value)
        case b"branch.upstream":
            found.upstream = show_text(value)
        case b"branch.ab":
            if match := _AHEAD.fullmatch(value):
                found.ahead, found.behind = int(match[1]), int(match[2])


def _changed(letters: bytes, name: bytes, old: bytes | None = None) -> GitChange:
    staged, unstaged = (("" if letter == "." else letter) for letter in letters.decode(errors="replace")[:2].ljust(2))
    return GitChange(show_name(name), staged, unstaged, None if old is None else show_name(old))


def show_text(data: bytes) -> str:
    return make_visible(data.decode(errors="replace"), lines=False)


@dataclass(frozen=True)
class GitCommit:
    id: str
    author: str
    at: int
    parents: tuple[str, ...]
    names: tuple[str, ...]
    """Branches and tags."""
    subject: str


LOG_FORMAT = "%H%x1f%an%x1f%ct%x1f%P%x1f%D%x1f%s"


def parse_log(data: bytes) -> Iterator[GitCommit]:
    """The output of `git log -z` with `LOG_FORMAT`."""
    for record in data.split(b"\0"):
        fields = record.split(b"\x1f", 5)
        if len(fields) == 6 and fields[2].isdigit():
            commit, author, at, parents, names, subject = fields
            yield GitCommit(
                show_text(commit),
                show_text(author),
                min(int(at), 2**53),
                tuple(show_text(parents).split()),
                tuple(name for name in show_text(names).split(", ") if name),
                show_text(subject),
            )


@dataclass(frozen=True)
class GitWorktree:
    """A folder with a branch checked out. `folder` is below the workspace; None when it is not."""

    folder: str | None
    branch: str | None
    commit: str


def parse_worktrees(data: bytes, workspace: str) -> Iterator[GitWorktree]:
    """The output of `git worktree list --porcelain -z`."""
    for record in data.split(b"\0\0"):
        facts = dict(line.partition(b" ")[::2] for line in record.split(b"\0") if line)
        if b"worktree" in facts:
            branch = facts.get(b"branch")
            yield GitWorktree(
                find_folder(os.fsdecode(facts[b"worktree"]), workspace),
                None if branch is None else show_text(branch.removeprefix(b"refs/heads/")),
                show_text(facts.get(b"HEAD", b"")),
            )


def find_folder(path: str, workspace: str) -> str | None:
    """The name below the workspace; `.` for the workspace itself."""
    if path == workspace:
        return "."
    return show_name(os.fsencode(path.removeprefix(f"{workspace}/"))) if path.startswith(f"{workspace}/") else None


@dataclass(frozen=True)
class GitRemote:
    name: str
    url: str


def parse_remotes(data: bytes) -> list[GitRemote]:
    """The output of `git config -z --get-regexp ^remote\\..*\\.url$`."""
    found: dict[str, GitRemote] = {}
    for record in data.split(b"\0"):
        key, _, url = record.partition(b"\n")
        name = show_text(key.removeprefix(b"remote.").removesuffix(b".url"))
        if name and url:
            found.setdefault(name, GitRemote(name, url.decode(errors="replace")))
    return list(found.values())
