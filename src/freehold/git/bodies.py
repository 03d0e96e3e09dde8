"""What `/v1/git` receives and answers."""

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticCustomError

from freehold.gateway.inputs import PathText, RequestBody
from freehold.gateway.moments import to_moment
from freehold.git.records import GitChange, GitCommit, GitWorktree
from freehold.git.remote_address import parse_remote
from freehold.git.repository import RepositoryState

_NOT_IN_BRANCH = re.compile(r"[\x00-\x20~^:?*\[\\\x7f]|\.\.|@\{|//|\.lock(?:/|$)|^[-/.]|[/.]$|/\.|^@$")


def _check_branch(name: str) -> str:
    """As `git check-ref-format` does, so that a name is never an option or an expression."""
    if _NOT_IN_BRANCH.search(name):
        raise PydanticCustomError("branch_name", "is not a name that git accepts for a branch")
    return name


BranchText = Annotated[
    str,
    Field(min_length=1, max_length=200, description="A name of a branch that git accepts."),
    AfterValidator(_check_branch),
]
CommitText = Annotated[str, Field(max_length=64, pattern="^[0-9a-f]{40}([0-9a-f]{24})?$")]
RemoteText = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")]
MAX_MESSAGE = 20_000
MAX_PATCH = 1_000_000
MAX_STAGED = 2_000


class GitFileBody(BaseModel):
    """A changed file. `staged` and `unstaged` are git's letters, empty for no change; `?` is a file that git does not know."""

    path: str
    old_path: str | None
    staged: str
    unstaged: str
    has_conflict: bool


class GitRemoteBody(BaseModel):
    """`secret` is the name in the vault of the credentials for its host; null where none can be used: an address of SSH or a folder."""

    name: str
    url: str
    secret: str | None
    has_credentials: bool


class GitWorktreeBody(BaseModel):
    """A folder with a branch of the repository. `folder` is below the workspace; null when it is not."""

    folder: str | None
    branch: str | None
    commit: str


class GitStateBody(BaseModel):
    """A repository. `branch` is null when HEAD is no branch; `commit` before the first commit.

    `is_cut`: it has more changed files. `unfinished` is an operation that waits, such as a merge with conflicts.
    `message_model` is the model that can write a commit message; null when none is cheap or on this machine.
    """

    folder: str
    commit: str | None
    branch: str | None
    upstream: str | None
    ahead: int
    behind: int
    files: list[GitFileBody]
    is_cut: bool
    branches: list[str]
    worktrees: list[GitWorktreeBody]
    remotes: list[GitRemoteBody]
    unfinished: str | None
    message_model: str | None


class GitRepositoriesBody(BaseModel):
    """The folders of the workspace that are repositories or worktrees; `.` is the workspace itself."""

    folders: list[str]


class GitDiffBody(BaseModel):
    """A unified diff. `is_exact`: its text is the whole diff, so that parts of it can be staged."""

    text: str
    is_exact: bool


class GitCommitBody(BaseModel):
    """`names` are branches and tags."""

    id: str
    author: str
    at: datetime
    parents: list[str]
    names: list[str]
    subject: str


class GitLogBody(BaseModel):
    """The newest first. Send `next` as `skip` for more; it is null at the end."""

    commits: list[GitCommitBody]
    next: int | None


class GitDoneBody(BaseModel):
    """The commit that HEAD names now; null before the first one."""

    commit: str | None


class GitMessageBody(BaseModel):
    """What a model proposes as the message of a commit."""

    message: str


class GitBody(RequestBody):
    folder: PathText = Field(
        description="The folder of the repository, below the workspace; `.` for the workspace itself."
    )


class StageFilesBody(GitBody):
    files: list[PathText] = Field(min_length=1, max_length=MAX_STAGED)
    staged: bool = Field(description="True to stage, false to take out of the index.")


class StageHunkBody(GitBody):
    patch: str = Field(min_length=1, max_length=MAX_PATCH, description="One file's part of a diff, with its head.")
    staged: bool = Field(description="True to stage, false to take out of the index.")


class ProposeMessageBody(GitBody):
    pass


class CreateCommitBody(GitBody):
    message: str = Field(min_length=1, max_length=MAX_MESSAGE)


class SwitchBranchBody(GitBody):
    branch: BranchText
    is_new: bool = False


class AddWorktreeBody(GitBody):
    branch: BranchText
    is_new: bool = False
    place: PathText = Field(description="The new folder, below the workspace.")


class RemoveWorktreeBody(GitBody):
    place: PathText


class PushBranchBody(GitBody):
    """`url` and `commit` are what the owner saw: another address or commit is not used."""

    remote: RemoteText
    url: str = Field(max_length=2_000)
    branch: BranchText
    commit: CommitText


class PullBranchBody(GitBody):
    remote: RemoteText
    url: str = Field(max_length=2_000)
    branch: BranchText


GitSide = Literal["worktree", "index"]


def describe_state(
    folder: str, state: RepositoryState, secrets: frozenset[str], message_model: str | None
) -> GitStateBody:
    status = state.status
    return GitStateBody(
        folder=folder,
        commit=status.commit,
        branch=status.branch,
        upstream=status.upstream,
        ahead=status.ahead,
        behind=status.behind,
        files=[_describe_file(one) for one in status.files],
        is_cut=status.is_cut,
        branches=state.branches,
        worktrees=[_describe_worktree(one) for one in state.worktrees],
        remotes=[_describe_remote(one.name, one.url, secrets) for one in state.remotes],
        unfinished=state.unfinished,
        message_model=message_model,
    )


def _describe_file(one: GitChange) -> GitFileBody:
    return GitFileBody(
        path=one.path, old_path=one.old_path, staged=one.staged, unstaged=one.unstaged, has_conflict=one.has_conflict
    )


def _describe_worktree(one: GitWorktree) -> GitWorktreeBody:
    return GitWorktreeBody(folder=one.folder, branch=one.branch, commit=one.commit)


def _describe_remote(name: str, url: str, secrets: frozenset[str]) -> GitRemoteBody:
    address = parse_remote(url)
    secret = None if address is None else address.secret
    return GitRemoteBody(name=name, url=url, secret=secret, has_credentials=secret in secrets)


def describe_commit(one: GitCommit) -> GitCommitBody:
    return GitCommitBody(
        id=one.id,
        author=one.author,
        at=to_moment(one.at),
        parents=list(one.parents),
        names=list(one.names),
        subject=one.subject,
    )
