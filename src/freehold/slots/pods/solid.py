"""Documents on a Solid server. Conditions and ETags are the server's own, so that other programs can write there too."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx2

from freehold.slots.bounded_http import make_client
from freehold.slots.errors import SlotError, slot_unavailable
from freehold.slots.pods.checks import changed, conflict, invalid, not_found
from freehold.slots.pods.contract import MAX_DOCUMENT, DocumentInfo
from freehold.slots.pods.solid_notice import wait_for_notice
from freehold.slots.pods.solid_sign_in import SignInFailed, SolidSignIn, is_safe
from freehold.slots.settings import ExternalSettings

TIMEOUT = 4.0
MAX_LISTING = 16 * 1024 * 1024
MAX_DIGITS = 15
"""Of a size that a server tells."""
LDP = "http://www.w3.org/ns/ldp#"
_MEDIA = "http://www.w3.org/ns/iana/media-types/"
_MODIFIED = "http://purl.org/dc/terms/modified"
_SIZE = "http://www.w3.org/ns/posix/stat#size"
UNQUOTED = "/!~*'()"
"""What stands for itself in an address, as in JavaScript: a server signs and lists addresses in that form only."""
_CONTAINERS = frozenset({f"{LDP}Container", f"{LDP}BasicContainer"})
_SETTINGS = ("url", "issuer", "client_id", "client_secret", "privacy")


class SolidServer:
    """One folder of a pod, with everything below it."""

    kind = "solid"

    def __init__(self, settings: ExternalSettings) -> None:
        settings.require_known(*_SETTINGS)
        url = settings.require("url")
        parts = urlsplit(url)
        if not is_safe(url) or parts.username is not None or parts.query or parts.fragment:
            raise settings.wrong(
                "slots.pods.settings.url is not an encrypted address of a folder in a pod",
                'url = "https://alice.example.com/freehold/"',
            )
        self._base = url if url.endswith("/") else f"{url}/"
        self._origin = f"{parts.scheme}://{parts.netloc}/"
        issuer = settings.find("issuer") or self._origin
        if not is_safe(issuer):
            raise settings.wrong("slots.pods.settings.issuer is not encrypted", "Use https beyond this machine")
        secret = settings.secret("client_secret")
        if secret is None:
            raise settings.wrong("slots.pods.settings.client_secret is missing", 'client_secret = "secret:NAME"')
        self._sign_in = SolidSignIn(issuer, settings.require("client_id"), secret)
        self._http: httpx2.AsyncClient | None = None

    async def connect(self) -> None:
        if self._http is None:
            self._http = make_client(2 * MAX_LISTING, auth=self._sign_in, timeout=TIMEOUT)
        answer = await self._send("GET", "", accept="text/turtle")
        if answer.status == 404:
            answer = await self._send("PUT", "", headers={"content-type": "text/turtle"}, content=b"")
        _require(answer, "")

    async def health(self) -> None:
        _require(await self._send("HEAD", ""), "")

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def read(self, path: str) -> tuple[DocumentInfo, bytes]:
        answer = _require(await self._send("GET", path), path)
        content = answer.content
        media = answer.headers.get("content-type", "application/octet-stream").partition(";")[0].strip().lower()
        return DocumentInfo(
            path, media, answer.headers.get("etag"), len(content), read_modified(answer.headers)
        ), content

    async def list_folder(self, folder: str) -> list[DocumentInfo]:
        answer = _require(await self._send("GET", folder, accept="application/ld+json"), folder)
        try:
            graph = json.loads(answer.content)
        except (ValueError, RecursionError):
            graph = None
        if not isinstance(graph, list):
            raise slot_unavailable("pods", "the listing of a folder is not JSON-LD")
        return read_listing(graph, self._url(folder), folder)

    async def write(self, path: str, media: str, content: bytes, *, if_match: str | None, is_new: bool) -> DocumentInfo:
        headers = {"content-type": media}
        if is_new:
            headers["if-none-match"] = "*"
        elif if_match is not None:
            headers["if-match"] = if_match
            if (await self._send("HEAD", path)).status == 404:
                raise changed(path)  # the community server would make a new document
        answer = _require(await self._send("PUT", path, headers=headers, content=content), path)
        # The server tells the new ETag only to who asks.
        etag = answer.headers.get("etag")
        if etag is None:
            asked = _require(await self._send("HEAD", path), path)
            return DocumentInfo(path, media, asked.headers.get("etag"), len(content), read_modified(asked.headers))
        return DocumentInfo(path, media, etag, len(content), read_modified(answer.headers))

    async def patch_n3(self, path: str, patch: str, *, if_match: str | None) -> DocumentInfo:
        headers = {"content-type": "text/n3", **({} if if_match is None else {"if-match": if_match})}
        _require(await self._send("PATCH", path, headers=headers, content=patch.encode()), path)
        return (await self.read(path))[0]

    async def make_folder(self, folder: str) -> None:
        if folder and (await self._send("HEAD", folder)).status == 404:
            headers = {"content-type": "text/turtle", "if-none-match": "*"}
            answer = await self._send("PUT", folder, headers=headers, content=b"")
            if answer.status not in (409, 412):  # somebody else has made it meanwhile
                _require(answer, folder)

    async def delete(self, path: str, *, if_match: str | None) -> None:
        headers = {} if if_match is None else {"if-match": if_match}
        _require(await self._send("DELETE", path, headers=headers), path)

    async def wait(self, path: str, etag: str, seconds: float) -> DocumentInfo:
        """By a notification of the server; where it has none, by asking at the end."""
        assert self._http is not None

        async def look() -> DocumentInfo:
            answer = _require(await self._send("HEAD", path), path)
            media = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
            size = read_size(answer.headers.get("content-length"))
            return DocumentInfo(path, media, answer.headers.get("etag"), size, read_modified(answer.headers))

        info = await look()
        if info.etag == etag:
            with suppress(httpx2.HTTPError, OSError, SignInFailed):
                await wait_for_notice(self._http, self._url(path), self._origin, seconds)
            info = await look()
        return info

    def _url(self, path: str) -> str:
        return self._base + quote(path, safe=UNQUOTED)

    async def _send(
        self,
        method: str,
        path: str,
        *,
        accept: str = "*/*",
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> "SolidReply":
        if self._http is None:
            raise slot_unavailable("pods", "it is not connected")
        given = {"accept": accept, **(headers or {})}
        try:
            async with (
                asyncio.timeout(2 * TIMEOUT),
                self._http.stream(method, self._url(path), headers=given, content=content) as answer,
            ):
                parts, size = [], 0
                async for part in answer.aiter_bytes():
                    size += len(part)
                    if size > (MAX_LISTING if path.endswith("/") or not path else MAX_DOCUMENT):
                        raise invalid(f"{path[:200]!a} is larger than {MAX_DOCUMENT} bytes")
                    parts.append(part)
        except SignInFailed as error:
            raise slot_unavailable("pods", str(error)) from error
        except (httpx2.HTTPError, OSError, TimeoutError) as error:
            raise slot_unavailable("pods", (str(error) or type(error).__name__).splitlines()[0][:200]) from error
        return SolidReply(answer.status_code, answer.reason_phrase, answer.headers, b"".join(parts))


@dataclass(frozen=True)
class SolidReply:
    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes


def _require(answer: SolidReply, path: str) -> SolidReply:
    """The answer, when it is a success. Raises the error of the family that it means."""
    status = answer.status
    if 200 <= status < 300:
        return answer
    if status == 404 or status == 410:
        raise not_found(path)
    if status == 412:
        raise changed(path)
    if status == 409:
        raise conflict(f"The Solid server refuses a change of {path[:200]!a}: it is not empty, or does not fit")
    if status == 403:
        raise SlotError("pods", "denied", f"The Solid server does not let Freehold reach {path[:200]!a}")
    if status in (400, 405, 413, 415, 422):
        raise invalid(f"The Solid server does not take this for {path[:200]!a}: {status} {answer.reason}")
    raise slot_unavailable("pods", f"the server answered {status} {answer.reason}".strip())


def read_listing(graph: list[Any], base: str, folder: str) -> list[DocumentInfo]:
    nodes = _merge_nodes(graph)
    found = []
    for member in nodes.get(base, {}).get(f"{LDP}contains", []):
        address = member.get("@id", "") if isinstance(member, dict) else ""
        name = unquote(address.removeprefix(base))
        if not address.startswith(base) or not name or "/" in name.removesuffix("/"):
            continue
        node = nodes.get(address, {})
        types = [one for one in node.get("@type", []) if isinstance(one, str)]
        media = next(
            (one.removeprefix(_MEDIA).removesuffix("#Resource") for one in types if one.startswith(_MEDIA)), None
        )
        is_folder = name.endswith("/") or not _CONTAINERS.isdisjoint(types)
        path = folder + name
        modified, size = _value(node, _MODIFIED), _value(node, _SIZE)
        found.append(
            DocumentInfo(
                path if not is_folder or path.endswith("/") else f"{path}/",
                None if is_folder else media,
                None,
                None if is_folder else read_size(size),
                _moment(modified),
            )
        )
    return sorted(found, key=lambda one: one.path)


def _merge_nodes(graph: list[Any]) -> dict[str, dict[str, list[Any]]]:
    """What the listing says about each address. A server may say it in several places."""
    nodes: dict[str, dict[str, list[Any]]] = {}
    for node in graph:
        if isinstance(node, dict) and isinstance(node.get("@id"), str):
            merged = nodes.setdefault(node["@id"], {})
            for name, values in node.items():
                if isinstance(values, list):
                    merged.setdefault(name, []).extend(values)
    return nodes


def _value(node: Mapping[str, Any], name: str) -> Any:
    values = node.get(name)
    return values[0].get("@value") if isinstance(values, list) and values and isinstance(values[0], dict) else None


def read_size(value: object) -> int | None:
    """A size as a server tells it; None for what is no number, or one that nothing has."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else None


def _moment(text: object) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):
        return None


def read_modified(headers: Mapping[str, str]) -> float | None:
    try:
        return parsedate_to_datetime(headers.get("last-modified", "")).timestamp()
    except (ValueError, OverflowError):
        return None
