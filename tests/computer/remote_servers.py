"""Servers for the tests of remote mounts: real ones, and one that answers whatever a test wants."""

import asyncio
import contextlib
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.condition import wait_until

USER, KEY = "AKTESTUSER", "correct-horse-battery-staple"
RCLONE = Path(sys.executable).with_name("rclone")
"""From PyPI: Debian's has no S3 server."""
_ADDRESS = re.compile(r"https?://127\.0\.0\.1:[0-9]+")


@dataclass(frozen=True)
class StorageServer:
    """What is below `folder/bucket` is what the server shows as the folder or bucket `bucket`."""

    kind: str
    url: str
    folder: Path

    @property
    def bucket(self) -> Path:
        return self.folder / "bucket"


@contextmanager
def storage_server(kind: str, folder: Path) -> Iterator[StorageServer]:
    """`kind` is `s3` or `webdav`. Only USER with KEY may use it."""
    (folder / "bucket").mkdir(parents=True)
    access = ["--auth-key", f"{USER},{KEY}"] if kind == "s3" else ["--user", USER, "--pass", KEY]
    quick = ["--vfs-cache-mode", "writes", "--vfs-write-back", "0", "--dir-cache-time", "0", "--config", "/dev/null"]
    log = folder / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [RCLONE, "serve", kind, "--addr", "127.0.0.1:0", *access, *quick, "--cache-dir", folder / "c", folder],
            stderr=output,
        )
    try:
        address = wait_until(lambda: _ADDRESS.search(log.read_text()))
        assert address is not None
        yield StorageServer(kind, address[0], folder)
    finally:
        server.kill()
        server.wait()


Answer = Callable[[str, str, asyncio.StreamWriter], Awaitable[None]]
"""Gets the method and the path of a request, and writes the answer."""


@asynccontextmanager
async def hostile_server(answer: Answer) -> AsyncIterator[str]:
    """The address of a server that does whatever a test wants. One answer for each connection."""
    tasks: set[asyncio.Task[None]] = set()
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, path, _ = head.split("\r\n")[0].split(" ")
            await answer(method, path, writer)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Also a connection that comes at the end, or whose task is cancelled before it has begun, is closed."""
        if ended.is_set():
            writer.close()
            return
        task = asyncio.create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(lambda _: writer.close())
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.close()
        ended.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def dav_entry(path: str, *, size: int | None = None) -> str:
    """One entry of a WebDAV listing: a file of `size` bytes, or a folder."""
    what = "<d:resourcetype><d:collection/></d:resourcetype>"
    if size is not None:
        what = f"<d:resourcetype/><d:getcontentlength>{size}</d:getcontentlength>"
    return (
        f"<d:response><d:href>{path}</d:href><d:propstat><d:prop>{what}</d:prop>"
        "<d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
    )


def http_answer(status: str, body: bytes = b"", kind: str = "application/xml") -> bytes:
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )


def dav_listing(*entries: str) -> bytes:
    body = f'<?xml version="1.0"?><d:multistatus xmlns:d="DAV:">{"".join(entries)}</d:multistatus>'
    return http_answer("207 Multi-Status", body.encode())
