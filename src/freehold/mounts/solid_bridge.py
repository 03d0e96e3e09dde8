"""A folder of a Solid pod as WebDAV, for one rclone that can reach nothing else.

rclone does not speak Solid. It gets no credential either: the key stays in this program, which signs each request. The
sockets on which this answers are in the network of the helper, where there is nobody but rclone.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from email.utils import formatdate
from urllib.parse import quote, unquote, urlsplit
from xml.sax.saxutils import escape

import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from freehold.mounts.solid_folder import PodRefused, SolidFolder, is_auxiliary
from freehold.slots.pods.contract import DocumentInfo

CHANGES = ("PUT", "MKCOL", "DELETE", "MOVE")
CLEANUP_SECONDS = 10.0
"""rclone deletes about a second after an upload that failed."""
MAX_MOVED = 100
"""Folders whose old names are remembered: rclone asks for a document by the old name for about a minute."""
MAX_REQUESTS = 64
STOP_TIMEOUT = 3.0
CHUNK = 128 * 1024
_PASSED_ON = ("content-length", "content-range", "content-type", "last-modified", "etag", "accept-ranges")


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: the program of the mounts handles signals."""
        yield


class SolidBridge:
    """`serve` answers rclone. Without `writable` it changes nothing, whatever rclone asks for."""

    def __init__(self, folder: SolidFolder, *, writable: bool) -> None:
        self._folder = folder
        self._writable = writable
        self._failed: dict[str, float] = {}
        self._moved: dict[str, str] = {}

    @property
    def last_failure(self) -> str | None:
        return self._folder.last_failure

    def is_keeping(self, path: str) -> bool:
        """Whether an upload of it has just failed, so that it is not deleted."""
        return self._failed.get(path, 0.0) > time.monotonic()

    @contextlib.asynccontextmanager
    async def serve(self, listeners: Sequence[socket.socket]) -> AsyncIterator[None]:
        """Answer on `listeners` for as long as the context lasts. Owns them."""
        config = uvicorn.Config(
            self._answer,
            interface="asgi3",
            log_level="critical",  # what goes wrong is in the state of the mount
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MAX_REQUESTS,
            timeout_graceful_shutdown=1,
        )
        server = _Server(config)
        serving = asyncio.ensure_future(server.serve(sockets=list(listeners)))
        try:
            yield
        finally:
            server.should_exit = server.force_exit = True
            _, pending = await asyncio.wait({serving}, timeout=STOP_TIMEOUT)
            for task in pending:
                task.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            for listener in listeners:
                listener.close()
            await self._folder.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        has_begun = False

        async def begin(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            path = _read_path(scope["path"])
            if request.method == "GET":
                await self._send_document(path, request, begin)
                return
            answer = await self._dispatch(request, path)
        except PodRefused as refusal:
            if has_begun:
                return  # the server broke off: so does this answer
            answer = Response(str(refusal), refusal.status)
        except ClientDisconnect:
            return
        await answer(scope, receive, begin)

    async def _dispatch(self, request: Request, path: str) -> Response:
        if request.method in CHANGES and not self._writable:
            raise PodRefused(403, "this mount is read-only")
        match request.method:
            case "PROPFIND":
                return await self._describe(path, request.headers.get("depth", "1"))
            case "PUT":
                return await self._write(path, request)
            case "MKCOL":
                return await self._make_folder(path)
            case "DELETE":
                return await self._delete(path)
            case "MOVE":
                return await self._move(path, request.headers.get("destination", ""))
        raise PodRefused(405, "this is not offered")

    async def _describe(self, path: str, depth: str) -> Response:
        if depth not in ("0", "1"):
            raise PodRefused(403, "only one folder is listed at a time")
        found = await self._folder.find(path)
        if found is None:
            raise PodRefused(404, "there is no such document")
        entries = [found]
        if depth == "1" and found.is_folder:
            entries += await self._folder.list_folder(found.path)
        body = "".join(_describe_entry(one) for one in entries if _is_text(one.path))
        page = f'<?xml version="1.0" encoding="utf-8"?><d:multistatus xmlns:d="DAV:">{body}</d:multistatus>'
        return Response(page, 207, media_type="application/xml")

    async def _send_document(self, path: str, request: Request, send: Send) -> None:
        async with self._folder.opened(self._find_moved(path), request.headers.get("range")) as found:
            headers = {name: found.headers[name] for name in _PASSED_ON if name in found.headers}
            answer = StreamingResponse(found.aiter_raw(CHUNK), found.status_code, headers)
            await answer(request.scope, request.receive, send)

    def _find_moved(self, path: str) -> str:
        """Where a document is whose folder was moved."""
        for _ in range(MAX_MOVED):
            old = next((one for one in self._moved if path.startswith(one)), None)
            if old is None:
                break
            path = self._moved[old] + path.removeprefix(old)
        return path

    def _forget_moved(self, path: str) -> None:
        """There is something new at this name: it is no longer an old one."""
        self._moved = {
            old: new for old, new in self._moved.items() if not (path.startswith(old) or old.startswith(path))
        }

    async def _write(self, path: str, request: Request) -> Response:
        self._forget_moved(path)
        try:
            await self._folder.write(path, request.stream())
        except BaseException:
            now = time.monotonic()
            self._failed = {one: until for one, until in self._failed.items() if until > now}
            self._failed[path] = now + CLEANUP_SECONDS
            raise
        self._failed.pop(path, None)
        return Response(status_code=201)

    async def _make_folder(self, path: str) -> Response:
        folder = path if path.endswith("/") else f"{path}/"
        try:
            await self._folder.make_folder(folder)
            self._forget_moved(folder)
        except PodRefused as refusal:
            if refusal.status not in (409, 412):
                raise
            raise PodRefused(405, "there is such a folder already") from refusal
        return Response(status_code=201)

    async def _delete(self, path: str) -> Response:
        """After a failed upload rclone deletes the document. It may be the version before, which the owner still wants."""
        if self.is_keeping(path):
            raise PodRefused(412, "what could not be replaced is kept")
        found = await self._folder.find(path)
        if found is None:
            raise PodRefused(404, "there is no such document")
        await self._folder.delete(found.path)
        return Response(status_code=204)

    async def _move(self, path: str, destination: str) -> Response:
        target = _read_path(unquote(urlsplit(destination).path))
        found = await self._folder.find(path)
        if found is None:
            raise PodRefused(404, "there is no such document")
        if found.path == "/" or not target:
            raise PodRefused(403, "the folder itself stays where it is")
        if found.is_folder:
            target = target if target.endswith("/") else f"{target}/"
            if target.startswith(found.path):
                raise PodRefused(409, "a folder cannot be moved into itself")
        await self._folder.move(found.path, target)
        self._forget_moved(target)
        if found.is_folder:
            self._moved[found.path] = target
            while len(self._moved) > MAX_MOVED:
                del self._moved[next(iter(self._moved))]
        return Response(status_code=201)


def _read_path(path: str) -> str:
    """Relative to the folder. Raises PodRefused for one that leads elsewhere, or to what rules over documents."""
    found = path.removeprefix("/")
    parts = found.removesuffix("/").split("/") if found else []
    if any(part in ("", ".", "..") for part in parts) or not _is_text(found):
        raise PodRefused(400, "this is not a path")
    if is_auxiliary(found):
        raise PodRefused(403, "who may read a document is not decided here")
    return found


def _is_text(path: str) -> bool:
    """What XML and addresses can hold."""
    return not any(one < " " or one == "\x7f" or "\ud800" <= one <= "\udfff" or one in "\ufffe\uffff" for one in path)


def _describe_entry(found: DocumentInfo) -> str:
    kind = "<d:collection/>" if found.is_folder else ""
    size = "" if found.size is None else f"<d:getcontentlength>{found.size}</d:getcontentlength>"
    moment = "" if found.modified is None else formatdate(found.modified, usegmt=True)
    modified = f"<d:getlastmodified>{moment}</d:getlastmodified>" if moment else ""
    return (
        f"<d:response><d:href>{escape(quote('/' + found.path.removeprefix('/')))}</d:href><d:propstat><d:prop>"
        f"<d:resourcetype>{kind}</d:resourcetype>{size}{modified}</d:prop>"
        "<d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
    )
