"""The computer's files. Names are written as history writes them, so that names with any bytes can be sent.

A browser never shows file contents on our origin: they are sent as downloads, whatever their type.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response, StreamingResponse

from freehold.computer.library.file_entry import FileEntry
from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.history_notes import note_file_change
from freehold.gateway.inputs import DIGITS, MAX_PATH_TEXT, PathText, RequestBody, UrlFlag, read_path
from freehold.gateway.moments import to_moment
from freehold.gateway.routing import get, post, put
from freehold.history.names import show_name

MAX_TREE = 200_000
MAX_PAGE = 1_000
# A search is a process in the computer. It is ended after this many seconds.
SEARCH_TIMEOUT = 20.0
MAX_UPLOAD = 2 * 1024**3
SKIPPED_FOLDERS = (".git", "node_modules", "__pycache__", ".venv")

Path = Annotated[str, Query(max_length=MAX_PATH_TEXT, description="Relative paths are under /workspace.")]


class FileEntryBody(BaseModel):
    """A file, folder or link."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    modified: datetime
    mode: int
    target: str | None = None
    etag: str = Field(description="Changes when the contents change. Send it as If-Match when writing.")


class FileListBody(BaseModel):
    """Entries of a folder, in the order of the bytes of their names. `next` is null on the last page."""

    path: str
    entries: list[FileEntryBody]
    next: str | None = Field(description="Send it as `after` for the next page.")


class FileTreeBody(BaseModel):
    """Everything below a folder, as `[path, kind, size]`. A folder comes before its contents."""

    path: str
    rows: list[tuple[str, str, int]]
    complete: bool


class WrittenFileBody(BaseModel):
    path: str
    size: int
    etag: str


class TextHitBody(BaseModel):
    """A line that matched. Lines and columns count from 1.

    `text` is the begin of the line. When the match is far from it, it is the part around the match, after an ellipsis.
    """

    path: str
    line: int
    column: int
    text: str


class FileSearchResultBody(BaseModel):
    hits: list[TextHitBody]
    more: bool


class CreateFolderBody(RequestBody):
    path: PathText


class MoveFileBody(RequestBody):
    path: PathText
    to: PathText
    replace: bool = False


class RemoveFileBody(RequestBody):
    path: PathText
    recursive: bool = False


class ChangedPathBody(BaseModel):
    path: str


def etag_of(entry: FileEntry) -> str:
    return f'"{entry.mtime_ns:x}-{entry.size:x}"'


def describe_entry(entry: FileEntry) -> FileEntryBody:
    return FileEntryBody(
        name=show_name(os.fsencode(entry.name)),
        kind=entry.kind,
        size=entry.size,
        modified=to_moment(entry.mtime_ns / 1e9),
        mode=entry.mode,
        target=None if entry.target is None else show_name(os.fsencode(entry.target)),
        etag=etag_of(entry),
    )


class FileRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services

    @get("/v1/files/list", scope="files")
    async def list_files(
        self,
        path: Path = ".",
        after: Annotated[str, Query(max_length=MAX_PATH_TEXT, description="Only names after this one.")] = "",
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE), DIGITS] = MAX_PAGE,
    ) -> FileListBody:
        """The contents of a folder, page by page."""
        page = await self._services.computer.files.list_page(read_path(path), after=read_path(after), limit=limit)
        entries = [describe_entry(entry) for entry in page.entries]
        return FileListBody(path=path, entries=entries, next=entries[-1].name if page.more and entries else None)

    @get("/v1/files/tree", response_model=FileTreeBody, scope="files")
    async def file_tree(self, path: Path = ".", all: UrlFlag = False) -> Response:
        """Everything below a folder. Without `all`, folders of git and package managers are skipped."""
        skip = () if all else SKIPPED_FOLDERS
        entries = await self._services.computer.files.walk(read_path(path), skip=skip, limit=MAX_TREE)
        # Encoded here and in a thread: the framework would build a large tree twice more, and block other requests.
        return Response(await asyncio.to_thread(_encode_tree, path, entries), media_type="application/json")

    @get("/v1/files/stat", scope="files")
    async def stat_file(self, path: Path) -> FileEntryBody:
        """One file or folder. A link is followed inside the computer only."""
        return describe_entry(await self._services.computer.files.stat(read_path(path)))

    @get(
        "/v1/files/content",
        response_class=Response,
        responses={200: {"content": {"application/octet-stream": {}}}},
        scope="files",
    )
    async def read_file(self, path: Path) -> Response:
        """The bytes of a file, as a download."""
        files = self._services.computer.files
        name = read_path(path)
        entry = await files.stat(name)
        if entry.kind != "file":
            raise FreeholdError(
                "files.is-a-folder", f"{path} is a folder, not a file", hint="GET /v1/files/list lists a folder"
            )
        pieces = files.stream(name, length=entry.size)
        first = await anext(pieces, b"")

        async def body() -> AsyncIterator[bytes]:
            yield first
            async for piece in pieces:
                yield piece

        headers = {
            "content-disposition": "attachment",
            "content-security-policy": "sandbox; default-src 'none'",
            "etag": etag_of(entry),
        }
        return StreamingResponse(body(), media_type="application/octet-stream", headers=headers)

    @put(
        "/v1/files/content",
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
            }
        },
        scope="files",
        max_body=MAX_UPLOAD,
    )
    async def write_file(self, request: Request, path: Path) -> WrittenFileBody:
        """Write a whole file. With `If-Match`, only when it has not changed; with `If-None-Match: *`, only when it is new."""
        files = self._services.computer.files
        name = read_path(path)
        wanted = request.headers.get("if-match")
        if wanted is not None:
            try:
                found = etag_of(await files.stat(name))
            except FreeholdError:
                found = None
            if found != wanted:
                raise FreeholdError(
                    "files.conflict",
                    f"{path} has changed since it was read",
                    hint="Read it again and decide which version to keep",
                )
        exclusive = request.headers.get("if-none-match") == "*"
        async with note_file_change(self._services, request, f"saved {path}"):
            size = await files.write(name, request.stream(), parents=True, exclusive=exclusive)
        return WrittenFileBody(path=path, size=size, etag=etag_of(await files.stat(name)))

    @get("/v1/files/search", scope="files")
    async def search_files(
        self,
        query: Annotated[str, Query(min_length=1, max_length=500)],
        path: Path = ".",
        regex: UrlFlag = False,
        ignore_case: UrlFlag = True,
        all: UrlFlag = False,
        limit: Annotated[int, Query(ge=1, le=5000), DIGITS] = 500,
    ) -> FileSearchResultBody:
        """Lines of text files that contain the query. Without `all`, folders of git and package managers are skipped."""
        try:
            async with asyncio.timeout(SEARCH_TIMEOUT):
                found = await self._services.computer.files.search(
                    query,
                    read_path(path),
                    regex=regex,
                    ignore_case=ignore_case,
                    skip=() if all else SKIPPED_FOLDERS,
                    limit=limit,
                )
        except TimeoutError:
            raise FreeholdError(
                "files.search-too-long",
                f"The search took longer than {SEARCH_TIMEOUT:.0f} s and was stopped",
                hint="Search in one folder, or use a simpler expression",
            ) from None
        hits = [
            TextHitBody(
                path=show_name(os.fsencode(hit.path)), line=hit.line, column=hit.column, text=_replace_invalid(hit.text)
            )
            for hit in found.hits
        ]
        return FileSearchResultBody(hits=hits, more=found.more)

    @post("/v1/files/folder", status_code=201, scope="files")
    async def make_folder(self, body: CreateFolderBody, request: Request) -> ChangedPathBody:
        """Create a folder and its missing parents."""
        async with note_file_change(self._services, request, f"made the folder {body.path}"):
            await self._services.computer.files.mkdir(read_path(body.path), parents=True)
        return ChangedPathBody(path=body.path)

    @post("/v1/files/move", scope="files")
    async def move_file(self, body: MoveFileBody, request: Request) -> ChangedPathBody:
        """Rename or move a file or folder."""
        async with note_file_change(self._services, request, f"moved {body.path} to {body.to}"):
            await self._services.computer.files.move(read_path(body.path), read_path(body.to), replace=body.replace)
        return ChangedPathBody(path=body.to)

    @post("/v1/files/copy", scope="files")
    async def copy_file(self, body: MoveFileBody, request: Request) -> ChangedPathBody:
        """Copy a file, or a folder with its contents."""
        async with note_file_change(self._services, request, f"copied {body.path} to {body.to}"):
            await self._services.computer.files.copy(read_path(body.path), read_path(body.to), replace=body.replace)
        return ChangedPathBody(path=body.to)

    @post("/v1/files/remove", scope="files")
    async def remove_file(self, body: RemoveFileBody, request: Request) -> ChangedPathBody:
        """Remove a file or folder. Undo brings it back."""
        async with note_file_change(self._services, request, f"removed {body.path}"):
            await self._services.computer.files.remove(read_path(body.path), recursive=body.recursive)
        return ChangedPathBody(path=body.path)


def _encode_tree(path: str, entries: list[FileEntry]) -> str:
    rows = [(show_name(os.fsencode(entry.name)), entry.kind, entry.size) for entry in entries]
    return FileTreeBody(path=path, rows=rows, complete=len(rows) < MAX_TREE).model_dump_json()


def _replace_invalid(text: str) -> str:
    """A line of any file as valid Unicode."""
    return text.encode("utf-8", "replace").decode("utf-8")
