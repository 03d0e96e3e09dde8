"""One folder of a Solid pod, read and written as a stream. Nothing that another program has written there is lost.

The server tells by an ETag which version of a document it has. Each change names the version that it replaces. If a
document was changed elsewhere since it was read here, what it was is kept beside it under another name.
"""

import asyncio
import contextlib
import hashlib
import json
import mimetypes
import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO
from urllib.parse import quote, urlsplit

import httpx2

from freehold.errors import FreeholdError
from freehold.observe.secrets import Secret
from freehold.slots.bounded_http import BoundedTransport
from freehold.slots.pods.checks import RESERVED_ENDINGS
from freehold.slots.pods.contract import DocumentInfo
from freehold.slots.pods.solid import UNQUOTED, read_listing, read_modified, read_size
from freehold.slots.pods.solid_sign_in import SignInFailed, SolidSignIn, is_safe

MAX_LISTING = 16 * 1024 * 1024
MAX_DOCUMENT = 1 << 40
MAX_KNOWN = 10_000
MAX_DEPTH = 64
CHUNK = 128 * 1024
_DOCUMENT = {"is_document": True}


class PodRefused(Exception):
    """The server did not do it. `status` is what it, or HTTP, says about that."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class PodAccount:
    """The folder, and the client credentials of the owner."""

    url: str
    issuer: str
    id: str
    secret: Secret


class _PodTransport(httpx2.AsyncBaseTransport):
    """Only a document may be long: it is passed on piece by piece."""

    def __init__(self) -> None:
        self._short, self._long = BoundedTransport(MAX_LISTING), BoundedTransport(MAX_DOCUMENT)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        chosen = self._long if request.extensions.get("is_document") else self._short
        return await chosen.handle_async_request(request)

    async def aclose(self) -> None:
        await self._short.aclose()
        await self._long.aclose()


class SolidFolder:
    """Paths are relative to the folder, which is "/" itself; those of folders end with a slash. Every call raises PodRefused.

    `last_failure` is why the server was not reached, or let nobody in; None after it has answered.
    """

    def __init__(self, account: PodAccount, timeout: float) -> None:
        parts = urlsplit(account.url)
        issuer = account.issuer or f"{parts.scheme}://{parts.netloc}/"
        for address in (account.url, issuer):
            if not is_safe(address) or parts.query or parts.fragment:
                raise FreeholdError(
                    "computer.mount-refused",
                    f"{address[:200]!r} is not the encrypted address of a pod",
                    hint='endpoint = "https://alice.example.com/"',
                    kind="invalid",
                )
        self._base = account.url if account.url.endswith("/") else f"{account.url}/"
        self._http = httpx2.AsyncClient(
            transport=_PodTransport(),
            auth=SolidSignIn(issuer, account.id, account.secret),
            headers={"accept-encoding": "identity"},
            timeout=timeout,
            trust_env=False,
        )
        self._known: OrderedDict[str, str] = OrderedDict()
        self.last_failure: str | None = None

    async def close(self) -> None:
        await self._http.aclose()

    async def find(self, path: str) -> DocumentInfo | None:
        """A document or a folder, whichever has this name."""
        names = [path or "/"] if path.endswith("/") or not path else [path, f"{path}/"]
        for name in names:
            headers = await self._head(name)
            if headers is not None:
                return await self._describe(name, headers)
        return None

    async def list_folder(self, folder: str) -> list[DocumentInfo]:
        async with self._sent("GET", folder, {"accept": "application/ld+json"}) as answer:
            content = await _read_listing(_require(answer, folder))
        try:
            graph = json.loads(content)
        except (ValueError, RecursionError):
            graph = None
        if not isinstance(graph, list):
            raise PodRefused(502, "the listing of a folder is not JSON-LD")
        return [
            one
            for one in read_listing(graph, self._url(folder), folder.removeprefix("/"))
            if not is_auxiliary(one.path)
        ]

    @contextlib.asynccontextmanager
    async def opened(self, path: str, span: str | None = None) -> AsyncIterator[httpx2.Response]:
        """The answer with the document, or with the span of it that HTTP calls a range."""
        headers = {"accept": "*/*", **({} if span is None else {"range": span})}
        async with self._sent("GET", path, headers, is_document=True) as answer:
            self._remember(path, _require(answer, path).headers.get("etag"))
            yield answer

    async def write(self, path: str, content: AsyncIterator[bytes], media: str | None = None) -> None:
        """A document keeps its media type. `media` is that of a new one, else its name decides."""
        headers = {"content-type": media or mimetypes.guess_type(path)[0] or "application/octet-stream"}
        async with _gathered(content) as whole:
            await self._replace(path, headers, whole)

    async def _replace(self, path: str, headers: dict[str, str], whole: "_WholeContent") -> None:
        now = await self._head(path)
        if now is None:
            headers["if-none-match"] = "*"
        else:
            headers["content-type"] = now.get("content-type", headers["content-type"])
            if etag := now.get("etag"):
                if self._known.get(path, etag) != etag:
                    await self._keep_other(path, etag)
                headers["if-match"] = etag
        headers["content-length"] = str(whole.size)
        async with self._sent("PUT", path, headers, content=whole.read()) as answer:
            _require(answer, path)
        # The server tells the new ETag only to who asks.
        written = await self._head(path)
        self._remember(path, None if written is None else written.get("etag"))

    async def make_folder(self, folder: str) -> None:
        headers = {"content-type": "text/turtle", "if-none-match": "*"}
        async with self._sent("PUT", folder, headers, content=b"") as answer:
            _require(answer, folder)

    async def delete(self, path: str) -> None:
        """Not if it is another version than the one that was read here."""
        known = self._known.get(path)
        async with self._sent("DELETE", path, {} if known is None else {"if-match": known}) as answer:
            _require(answer, path)
        self._known.pop(path, None)

    async def move(self, source: str, target: str, depth: int = 0) -> None:
        """What was not moved is still where it was."""
        if depth > MAX_DEPTH:
            raise PodRefused(403, f"{source[:200]!a} is deeper than {MAX_DEPTH} folders")
        if source.endswith("/"):
            if await self._head(target) is None:
                await self.make_folder(target)
            for child in await self.list_folder(source):
                await self.move(child.path, target + child.path.removeprefix(source), depth + 1)
        else:
            async with self.opened(source) as answer:
                await self.write(target, answer.aiter_raw(), answer.headers.get("content-type"))
        await self.delete(source)

    async def _keep_other(self, path: str, etag: str) -> None:
        """Copy the document that is about to be replaced, unless it was copied already."""
        place = PurePosixPath(path)
        mark = hashlib.sha256(etag.encode()).hexdigest()[:8]
        copy = str(place.with_name(f"{place.stem} (changed elsewhere {mark}){place.suffix}"))
        async with self._sent("GET", path, {"accept": "*/*"}, is_document=True) as answer:
            if _require(answer, path).headers.get("etag") != etag:
                raise PodRefused(412, f"{path[:200]!a} changes elsewhere at the moment")
            headers = {"content-type": answer.headers.get("content-type", "application/octet-stream")}
            headers["if-none-match"] = "*"
            async with _gathered(answer.aiter_raw()) as whole:
                headers["content-length"] = str(whole.size)
                async with self._sent("PUT", copy, headers, content=whole.read()) as put:
                    if put.status_code != 412:
                        _require(put, copy)

    async def _describe(self, path: str, headers: Mapping[str, str]) -> DocumentInfo:
        if path.endswith("/"):
            return DocumentInfo(path, None, None, None, read_modified(headers))
        size = read_size(headers.get("content-length"))
        if size is None:  # the listing knows it
            folder = path.rpartition("/")
            for one in await self.list_folder(folder[0] + folder[1]):
                if one.path == path:
                    return one
        return DocumentInfo(path, "", None, size, read_modified(headers))

    async def _head(self, path: str) -> Mapping[str, str] | None:
        """None if there is nothing. A document is never found at the name of a folder."""
        async with self._sent("HEAD", path, {"accept": "*/*"}) as answer:
            if answer.status_code in (404, 410):
                return None
            return _require(answer, path).headers

    def _remember(self, path: str, etag: str | None) -> None:
        self._known.pop(path, None)
        if etag is not None:
            self._known[path] = etag
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)

    def _url(self, path: str) -> str:
        return self._base + quote(path.removeprefix("/"), safe=UNQUOTED)

    @contextlib.asynccontextmanager
    async def _sent(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        *,
        content: bytes | AsyncIterator[bytes] | None = None,
        is_document: bool = False,
    ) -> AsyncIterator[httpx2.Response]:
        extensions = _DOCUMENT if is_document else {}
        try:
            async with self._http.stream(
                method, self._url(path), headers=headers, content=content, extensions=extensions
            ) as answer:
                self.last_failure = None
                yield answer
        except SignInFailed as error:
            self.last_failure = f"The server refuses the key: {error}"
            raise PodRefused(401, str(error)) from error
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            words = (str(error) or type(error).__name__).splitlines()[0][:200]
            self.last_failure = f"{urlsplit(self._base).netloc} cannot be reached: {words}"
            raise PodRefused(502, words) from error


@dataclass(frozen=True)
class _WholeContent:
    size: int
    _file: IO[bytes]

    async def read(self) -> AsyncIterator[bytes]:
        while part := await asyncio.to_thread(self._file.read, CHUNK):
            yield part


@contextlib.asynccontextmanager
async def _gathered(content: AsyncIterator[bytes]) -> AsyncIterator[_WholeContent]:
    """All of a content, in a file of this machine. Some servers empty a document when an upload begins, and keep what
    came of one that breaks off: so nothing is sent before all of it is here."""
    with tempfile.TemporaryFile() as file:
        size = 0
        async for part in content:
            size += await asyncio.to_thread(file.write, part)
        file.seek(0)
        yield _WholeContent(size, file)


def is_auxiliary(path: str) -> bool:
    """Whether it says who may read others, or what others are. Such a document is not part of the folder."""
    return any(part.lower().endswith(RESERVED_ENDINGS) for part in path.split("/"))


def _require(answer: httpx2.Response, path: str) -> httpx2.Response:
    if not 200 <= answer.status_code < 300:
        raise PodRefused(answer.status_code, f"the Solid server answered {answer.status_code} for {path[:200]!a}")
    return answer


async def _read_listing(answer: httpx2.Response) -> bytes:
    return b"".join([part async for part in answer.aiter_bytes()])  # bounded by its transport
