"""The replies of `/v1/git` as frozen objects."""

from datetime import datetime

from freehold.client.models import ApiModel


class GitFileInfo(ApiModel):
    """A changed file. `staged` and `unstaged` are git's letters, empty for no change; `?` is a file that git does not know."""

    path: str
    old_path: str | None
    staged: str
    unstaged: str
    has_conflict: bool


class GitRemoteInfo(ApiModel):
    """`secret` is the name in the vault of the credentials for its host. None where none can be used."""

    name: str
    url: str
    secret: str | None
    has_credentials: bool


class GitWorktreeInfo(ApiModel):
    """A folder with a branch of the repository. `folder` is below the workspace; None when it is not."""

    folder: str | None
    branch: str | None
    commit: str


class RepositoryInfo(ApiModel):
    """`branch` is None when HEAD is no branch; `commit` before the first commit. `is_cut`: it has more changed files.

    `message_model` is the model that can write a commit message; None when none is cheap or on this machine.
    """

    folder: str
    commit: str | None
    branch: str | None
    upstream: str | None
    ahead: int
    behind: int
    files: tuple[GitFileInfo, ...]
    is_cut: bool
    branches: tuple[str, ...]
    worktrees: tuple[GitWorktreeInfo, ...]
    remotes: tuple[GitRemoteInfo, ...]
    unfinished: str | None
    message_model: str | None = None


class RepositoryFolders(ApiModel):
    folders: tuple[str, ...]


class GitDiffText(ApiModel):
    """A unified diff. `is_exact`: it is the whole diff, so that parts of it can be staged."""

    text: str
    is_exact: bool


class GitMessage(ApiModel):
    message: str


class GitCommitInfo(ApiModel):
    """`names` are branches and tags."""

    id: str
    author: str
    at: datetime
    parents: tuple[str, ...]
    names: tuple[str, ...]
    subject: str


class GitLogPage(ApiModel):
    """The newest first. Pass `next` as `skip` for more; None on the last page."""

    commits: tuple[GitCommitInfo, ...]
    next: int | None


class GitHead(ApiModel):
    """The commit that HEAD names now; None before the first one."""

    commit: str | None
