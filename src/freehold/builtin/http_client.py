"""A small HTTP/1.1 client: one request a connection, answers read as they come, proxies of the environment honoured.

The program must start in a fraction of a second. The libraries for this take longer to import than all of the rest.
"""

import asyncio
import os
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

CONNECT_TIMEOUT = 30.0
MAX_HEAD = 64 * 1024
MAX_REDIRECTS = 10
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}")


class HttpError(Exception):
    """The request could not be made, or its answer is not HTTP. The message says which."""


@dataclass
class HttpAnswer:
    """An answer whose body is still to be read."""

    status: int
    headers: Mapping[str, str]
    url: str
    _reader: asyncio.StreamReader

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises `HttpError` when it breaks off."""
        try:
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                async for piece in self._chunks():
                    yield piece
            elif "content-length" in self.headers:
                left = int(self.headers["content-length"])
                while left > 0:
                    piece = await self._reader.read(min(left, 65536))
                    if not piece:
                        raise HttpError("the connection ended in the middle of the answer")
                    left -= len(piece)
                    yield piece
            else:
                while piece := await self._reader.read(65536):
                    yield piece
        except (OSError, EOFError, ValueError) as error:
            raise HttpError(f"the connection ended in the middle of the answer ({type(error).__name__})") from error

    async def read(self, limit: int | None = None) -> bytes:
        """The body, or its first `limit` bytes."""
        data = bytearray()
        async for piece in self.pieces():
            data += piece
            if limit is not None and len(data) >= limit:
                return bytes(data[:limit])
        return bytes(data)

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            size = (await self._reader.readline()).split(b";")[0].strip()
            if not _CHUNK_SIZE.fullmatch(size):
                raise HttpError("the connection ended in the middle of the answer")
            left = int(size, 16)
            if left == 0:
                return
            while left:
                piece = await self._reader.read(min(left, 65536))
                if not piece:
                    raise HttpError("the connection ended in the middle of the answer")
                left -= len(piece)
                yield piece
            await self._reader.readexactly(2)


@asynccontextmanager
async def open_request(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes = b"",
    *,
    timeout: float | None = None,
    follow_redirects: bool = False,
) -> AsyncIterator[HttpAnswer]:
    """Sends a request and yields its answer. `timeout` is the longest wait for its head, in seconds."""
    for _ in range(MAX_REDIRECTS):
        reader, writer = await _connect(urlsplit(url))
        try:
            answer = await _exchange(method, url, headers, body, reader, writer, timeout)
            if not follow_redirects or answer.status not in _REDIRECTS or "location" not in answer.headers:
                yield answer
                return
            url = urljoin(url, answer.headers["location"])
        finally:
            writer.close()
    raise HttpError(f"more than {MAX_REDIRECTS} redirects")


async def _exchange(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    timeout: float | None,
) -> HttpAnswer:
    parts = urlsplit(url)
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    fields = {"Host": parts.netloc.rpartition("@")[2], "Connection": "close", "Accept-Encoding": "identity"}
    if parts.scheme == "http" and (proxy := _find_proxy(parts)) is not None:
        target = f"http://{fields['Host']}{target}"
        fields |= _proxy_authorization(proxy)
    if body or method == "POST":
        fields["Content-Length"] = str(len(body))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in {**fields, **headers}.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise HttpError("the address or a header holds a line break")
    try:
        writer.write("\r\n".join(lines).encode("utf-8") + b"\r\n\r\n" + body)
        await writer.drain()
        async with asyncio.timeout(timeout):
            status, received = await _read_head(reader)
    except TimeoutError as error:
        raise HttpError(f"no answer within {timeout:g} seconds") from error
    except (OSError, EOFError, asyncio.LimitOverrunError) as error:
        raise HttpError(f"the connection ended before the answer ({type(error).__name__})") from error
    return HttpAnswer(status, received, url, reader)


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """The status and the headers, their names in lower case. Interim answers are skipped."""
    while True:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        found = re.fullmatch(r"HTTP/1\.[01] (\d{3})(?: .*)?", head[0])
        if found is None:
            raise HttpError("the answer is not HTTP")
        headers = {}
        for line in head[1:]:
            name, mark, value = line.partition(":")
            if mark:
                headers[name.strip().lower()] = value.strip()
        if int(found[1]) >= 200:
            return int(found[1]), headers


async def _connect(parts: SplitResult) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise HttpError("the address must begin with http:// or https://")
    host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    proxy = _find_proxy(parts)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            if proxy is not None:
                reader, writer = await asyncio.open_connection(proxy.hostname, proxy.port or 3128, limit=MAX_HEAD)
            else:
                reader, writer = await asyncio.open_connection(host, port, limit=MAX_HEAD)
    except TimeoutError as error:
        raise HttpError(f"no connection within {CONNECT_TIMEOUT:g} seconds") from error
    except OSError as error:
        raise HttpError(os.strerror(error.errno) if error.errno else str(error)) from error
    try:
        if parts.scheme == "https":
            if proxy is not None:
                await _open_tunnel(reader, writer, host, port, proxy)
            await writer.start_tls(ssl.create_default_context(), server_hostname=host)
    except (OSError, EOFError) as error:
        writer.close()
        raise HttpError(str(error) or type(error).__name__) from error
    except BaseException:
        writer.close()
        raise
    return reader, writer


async def _open_tunnel(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int, proxy: SplitResult
) -> None:
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    fields = "".join(f"{name}: {value}\r\n" for name, value in _proxy_authorization(proxy).items())
    writer.write(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{fields}\r\n".encode())
    # The owner may be asked first, so there is no timeout.
    status, headers = await _read_head(reader)
    if status != 200:
        words = await HttpAnswer(status, headers, place, reader).read(2000)
        raise HttpError(words.decode(errors="replace").strip() or f"the proxy answered {status}")


def _find_proxy(parts: SplitResult) -> SplitResult | None:
    """The proxy for this address by the environment, or None."""
    host = parts.hostname or ""
    without = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    names = [name.strip().lstrip(".") for name in without.split(",") if name.strip()]
    if host in ("localhost", "127.0.0.1", "::1") or any(
        name == "*" or host == name or host.endswith(f".{name}") for name in names
    ):
        return None
    variable = f"{parts.scheme}_proxy"
    address = os.environ.get(variable) or os.environ.get(variable.upper())
    return urlsplit(address if "://" in address else f"http://{address}") if address else None


def _proxy_authorization(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    import base64

    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
