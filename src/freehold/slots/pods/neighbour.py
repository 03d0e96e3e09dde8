"""Documents that a paired Freehold keeps, over its API."""

import asyncio
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

import httpx2

from freehold.slots.neighbour import NeighbourApi
from freehold.slots.pods.checks import check_folder, check_path, invalid
from freehold.slots.pods.contract import MAX_PAGE, DocumentInfo
from freehold.slots.pods.solid import read_modified
from freehold.slots.settings import ExternalSettings
from freehold.strict_json import WrongShape, decode

DATA = "/v1/slots/pods/data/"
LIST = "/v1/slots/pods/list"
MAX_LISTED = 20_000
WAIT_INTERVAL = 1.0


class NeighbourPods:
    """A `PodBackend`. Which agent here may reach what is decided here, and what this Freehold may, there."""

    kind = "freehold"

    def __init__(self, settings: ExternalSettings) -> None:
        self._api = NeighbourApi(settings)

    async def connect(self) -> None:
        self._api.open()
        await self.health()

    async def health(self) -> None:
        await self._api.send("GET", LIST, query={"limit": 1})

    async def close(self) -> None:
        await self._api.close()

    async def read(self, path: str) -> tuple[DocumentInfo, bytes]:
        answer = await self._api.transfer("GET", _address(path))
        return _info(path, answer, len(answer.content)), answer.content

    async def list_folder(self, folder: str) -> list[DocumentInfo]:
        found: list[DocumentInfo] = []
        cursor: str | None = None
        while True:
            page = await self._api.send("GET", LIST, query={"folder": folder, "limit": MAX_PAGE, "cursor": cursor})
            try:
                found += [_document(one, folder) for one in page["entries"]]
                following = page["cursor"]
            except (WrongShape, KeyError, TypeError, ValueError) as error:
                raise self._api.wrong_reply(error) from error
            if not isinstance(following, str) or following == cursor:
                return sorted(found, key=lambda one: one.path)
            if len(found) > MAX_LISTED:
                raise invalid(f"There are more than {MAX_LISTED} entries here", "Name a folder below this one")
            cursor = following

    async def write(self, path: str, media: str, content: bytes, *, if_match: str | None, is_new: bool) -> DocumentInfo:
        headers = {"content-type": media, **_condition(if_match), **({"if-none-match": "*"} if is_new else {})}
        return self._decode(path, await self._api.transfer("PUT", _address(path), content, headers))

    async def patch_n3(self, path: str, patch: str, *, if_match: str | None) -> DocumentInfo:
        headers = {"content-type": "text/n3", **_condition(if_match)}
        return self._decode(path, await self._api.transfer("PATCH", _address(path), patch.encode(), headers))

    async def make_folder(self, folder: str) -> None:
        await self._api.transfer("PUT", _address(folder), b"", {"content-type": "text/plain"})

    async def delete(self, path: str, *, if_match: str | None) -> None:
        await self._api.transfer("DELETE", _address(path), None, _condition(if_match))

    async def wait(self, path: str, etag: str, seconds: float) -> DocumentInfo:
        """By asking again: a version that is known is not sent."""
        end = time.monotonic() + seconds
        while True:
            answer = await self._api.transfer("GET", _address(path), None, {"if-none-match": etag})
            left = end - time.monotonic()
            if answer.status_code != 304 or left <= 0:
                return _info(path, answer, len(answer.content) if answer.status_code != 304 else None)
            await asyncio.sleep(min(left, WAIT_INTERVAL))

    def _decode(self, path: str, answer: httpx2.Response) -> DocumentInfo:
        try:
            return _document(answer.json(), path.rpartition("/")[0])
        except (WrongShape, KeyError, TypeError, ValueError) as error:
            raise self._api.wrong_reply(error) from error


def _address(path: str) -> str:
    return DATA + quote(path, safe="/")


def _condition(if_match: str | None) -> dict[str, str]:
    return {} if if_match is None else {"if-match": if_match}


def _info(path: str, answer: httpx2.Response, size: int | None) -> DocumentInfo:
    media = answer.headers.get("content-type", "application/octet-stream")
    return DocumentInfo(path, media, answer.headers.get("etag"), size, read_modified(answer.headers))


def _document(value: object, folder: str) -> DocumentInfo:
    """What the other side says about an entry of this folder. A path elsewhere would lead the reader astray."""
    if not isinstance(value, dict):
        raise WrongShape("an object is missing")
    fields: Mapping[str, Any] = value
    modified = fields.get("modified")
    at = None if modified is None else datetime.fromisoformat(str(modified)).timestamp()
    found = decode(DocumentInfo, {**fields, "modified": at})
    if found.is_folder:
        check_folder(found.path)
    else:
        check_path(found.path)
    if not found.path.startswith(folder):
        raise WrongShape("an entry is in another folder")
    return found
