"""The replies of `/v1/files` as frozen objects."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from freehold.client.models import ApiModel


class FileInfo(ApiModel):
    """`etag` changes when the contents change."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    modified: datetime
    mode: int
    target: str | None = None
    etag: str


class FolderPage(ApiModel):
    """The contents of a folder. Pass `next` as `after` to get the next page; None on the last page."""

    path: str
    entries: tuple[FileInfo, ...]
    next: str | None


class FolderTree(ApiModel):
    """Everything below a folder: path, kind and size. `complete` is False when more was left out."""

    path: str
    rows: tuple[tuple[str, str, int], ...]
    complete: bool


class FileHit(ApiModel):
    """A line that matched. Lines and columns count from 1."""

    path: str
    line: int
    column: int
    text: str


class FileHits(ApiModel):
    hits: tuple[FileHit, ...]
    more: bool


class SavedFile(ApiModel):
    path: str
    size: int
    etag: str


class ChangedPathInfo(ApiModel):
    path: str


@dataclass(frozen=True)
class FileContent:
    """The bytes of a file. `write` with its `etag` refuses to replace what others wrote since."""

    content: bytes
    etag: str
