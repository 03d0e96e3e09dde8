"""The computer's files for browsers and clients. Names are spelled as history spells them, so that any bytes travel.

Nothing from here is ever drawn by a browser on our origin: contents are downloads, whatever they claim to be.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import FastAPI, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response, StreamingResponse

from freehold.computer.entries import Entry
from freehold.errors import FreeholdError
from freehold.gateway.house import House
from freehold.gateway.needs import needs
from freehold.gateway.noting import acting
from freehold.history.names import read_name, show_name

MAX_TREE = 200_000
# A search is a process of its own in the computer, and ends with the question.
SEARCH_PATIENCE = 20.0
LARGEST_UPLOAD = 2 * 1024**3
SKIPPED = (".git", "node_modules", "__pycache__", ".venv")

Path = Annotated[str, Query(max_length=8192, description="Relative paths are under /workspace.")]


class FileRow(BaseModel):
    """A file, folder or link."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    modified: float
    mode: int
    target: str | None = None
    etag: str = Field(description="Changes when the contents do; give it back when writing.")


class FileList(BaseModel):
    path: str
    entries: list[FileRow]


class FileTree(BaseModel):
    """Everything below a folder in the order of a walk: `[path, kind, size]`, folders before what is in them."""

    path: str
    rows: list[tuple[str, str, int]]
    complete: bool


class Written(BaseModel):
    path: str
    size: int
    etag: str


class TextHit(BaseModel):
    """A line that matched; lines and columns count from 1."""

    path: str
    line: int
    column: int
    text: str


class FilesFound(BaseModel):
    hits: list[TextHit]
    more: bool


class MakeFolder(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str = Field(max_length=8192)


class MoveFile(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str = Field(max_length=8192)
    to: str = Field(max_length=8192)
    replace: bool = False


class RemoveFile(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str = Field(max_length=8192)
    recursive: bool = False


class FilesDone(BaseModel):
    path: str


def etag_of(entry: Entry) -> str:
    return f'"{entry.mtime_ns:x}-{entry.size:x}"'


def _row(entry: Entry) -> FileRow:
    return FileRow(
        name=show_name(os.fsencode(entry.name)),
        kind=entry.kind,
        size=entry.size,
        modified=entry.mtime_ns / 1e9,
        mode=entry.mode,
        target=None if entry.target is None else show_name(os.fsencode(entry.target)),
        etag=etag_of(entry),
    )


def add_files(app: FastAPI, house: House) -> None:
    @app.get("/v1/files/list")
    @needs("files")
    async def list_files(path: Path = ".") -> FileList:
        """What is in a folder."""
        entries = await house.sealed.computer.files.list(read_name(path))
        return FileList(path=path, entries=[_row(entry) for entry in entries])

    @app.get("/v1/files/tree", response_model=FileTree)
    @needs("files")
    async def file_tree(path: Path = ".", all: bool = False) -> Response:
        """Everything below a folder; without `all`, what package managers and git keep is left out."""
        skip = () if all else SKIPPED
        entries = await house.sealed.computer.files.walk(read_name(path), skip=skip, limit=MAX_TREE)
        rows = [(show_name(os.fsencode(entry.name)), entry.kind, entry.size) for entry in entries]
        tree = FileTree(path=path, rows=rows, complete=len(rows) < MAX_TREE)
        # Written here: on its way through the framework a large tree is built twice more, and others wait meanwhile.
        return Response(tree.model_dump_json(), media_type="application/json")

    @app.get("/v1/files/stat")
    @needs("files")
    async def stat_file(path: Path) -> FileRow:
        """One file or folder; a link is followed inside the computer only."""
        return _row(await house.sealed.computer.files.stat(read_name(path)))

    @app.get(
        "/v1/files/content", response_class=Response, responses={200: {"content": {"application/octet-stream": {}}}}
    )
    @needs("files")
    async def read_file(path: Path) -> Response:
        """The bytes of a file, as a download."""
        files = house.sealed.computer.files
        name = read_name(path)
        entry = await files.stat(name)
        if entry.kind != "file":
            raise FreeholdError("files.is-a-folder", f"{path} is not a file", hint="GET /v1/files/list lists a folder")
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

    @app.put(
        "/v1/files/content",
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
            }
        },
    )
    @needs("files", most_body=LARGEST_UPLOAD)
    async def write_file(request: Request, path: Path) -> Written:
        """Replace a file whole. With `If-Match`, only when it is still what was read; with `If-None-Match: *`, only a new one."""
        files = house.sealed.computer.files
        name = read_name(path)
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
                    hint="Read it again and decide which version stays",
                )
        exclusive = request.headers.get("if-none-match") == "*"
        async with acting(house, request, f"saved {path}"):
            size = await files.write(name, request.stream(), parents=True, exclusive=exclusive)
        return Written(path=path, size=size, etag=etag_of(await files.stat(name)))

    @app.get("/v1/files/search")
    @needs("files")
    async def search_files(
        query: Annotated[str, Query(min_length=1, max_length=500)],
        path: Path = ".",
        regex: bool = False,
        ignore_case: bool = True,
        all: bool = False,
        limit: Annotated[int, Query(ge=1, le=5000)] = 500,
    ) -> FilesFound:
        """Lines of text files that hold the query; without `all`, what package managers and git keep is left out."""
        try:
            async with asyncio.timeout(SEARCH_PATIENCE):
                found = await house.sealed.computer.files.search(
                    query,
                    read_name(path),
                    regex=regex,
                    ignore_case=ignore_case,
                    skip=() if all else SKIPPED,
                    limit=limit,
                )
        except TimeoutError:
            raise FreeholdError(
                "files.search-too-long",
                f"The search took longer than {SEARCH_PATIENCE:.0f} s and was ended",
                hint="Search in one folder, or with a simpler expression",
            ) from None
        hits = [
            TextHit(path=show_name(os.fsencode(hit.path)), line=hit.line, column=hit.column, text=_shown(hit.text))
            for hit in found.hits
        ]
        return FilesFound(hits=hits, more=found.more)

    @app.post("/v1/files/folder", status_code=201)
    @needs("files")
    async def make_folder(body: MakeFolder, request: Request) -> FilesDone:
        """Make a folder and what is missing on the way."""
        async with acting(house, request, f"made the folder {body.path}"):
            await house.sealed.computer.files.mkdir(read_name(body.path), parents=True)
        return FilesDone(path=body.path)

    @app.post("/v1/files/move")
    @needs("files")
    async def move_file(body: MoveFile, request: Request) -> FilesDone:
        """Rename or move."""
        async with acting(house, request, f"moved {body.path} to {body.to}"):
            await house.sealed.computer.files.move(read_name(body.path), read_name(body.to), replace=body.replace)
        return FilesDone(path=body.to)

    @app.post("/v1/files/copy")
    @needs("files")
    async def copy_file(body: MoveFile, request: Request) -> FilesDone:
        """Copy a file, or a folder with everything in it."""
        async with acting(house, request, f"copied {body.path} to {body.to}"):
            await house.sealed.computer.files.copy(read_name(body.path), read_name(body.to), replace=body.replace)
        return FilesDone(path=body.to)

    @app.post("/v1/files/remove")
    @needs("files")
    async def remove_file(body: RemoveFile, request: Request) -> FilesDone:
        """Remove; history keeps what was there."""
        async with acting(house, request, f"removed {body.path}"):
            await house.sealed.computer.files.remove(read_name(body.path), recursive=body.recursive)
        return FilesDone(path=body.path)


def _shown(text: str) -> str:
    """A line of a hostile file as JSON may carry it."""
    return text.encode("utf-8", "replace").decode("utf-8")
