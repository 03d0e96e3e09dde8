"""A repository in S3 or a compatible service. Four kinds of requests, signed here; no library of the vendor."""

import email.utils
import hashlib
import re
import time
import xml.etree.ElementTree as ElementTree
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

import httpx2

from freehold.backup.stores.aws_signature import AwsKey, encode_path, encode_query, sign_request
from freehold.backup.stores.contract import (
    MAX_OBJECT,
    ObjectExists,
    ObjectMissing,
    StoredObject,
    check_object_name,
    is_object_name,
    object_lost,
    store_full,
    store_refused,
    store_unreachable,
    store_without_conditions,
)
from freehold.errors import FreeholdError
from freehold.tls_trust import trust_for

TRIES = 6
FIRST_PAUSE = 0.2
MAX_PAUSE = 10.0
MAX_PAGES = 10_000
"""Of a listing, with at most a thousand objects each."""
_MAX_LISTING = 8 << 20
_MAX_SKEW = 1e9
_SIZE = re.compile(r"[0-9]{1,18}")
_FULL = (
    "QuotaExceeded",
    "StorageFull",
    "InsufficientStorage",
    "EntityTooLarge",
    "XMinioStorageFull",
    "TotalSizeExceeded",
)
_RETRIED = ("RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "OperationAborted")


@dataclass(frozen=True)
class S3Place:
    """`endpoint` is the address of the service; the bucket is the first part of the path of every request."""

    endpoint: str
    bucket: str
    prefix: str
    key: AwsKey


class S3Store:
    def __init__(self, place: S3Place, *, timeout: float = 60.0, pause: float = FIRST_PAUSE) -> None:
        parts = urlsplit(place.endpoint)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise store_refused(place.endpoint, "the endpoint must be an address such as https://s3.example.com")
        self.where = f"s3://{place.bucket}/{place.prefix}".rstrip("/")
        self._base = f"{parts.scheme}://{parts.netloc}"
        self._host = parts.netloc
        self._place = place
        self._pause = pause
        self._root = f"{place.prefix.strip('/')}/" if place.prefix.strip("/") else ""
        self._skew = 0.0
        """How much the clock of the store is ahead of ours. A wrong clock here would make every signature invalid."""
        limits = httpx2.Limits(max_connections=8, max_keepalive_connections=8)
        self._client = httpx2.Client(
            timeout=httpx2.Timeout(timeout, connect=15.0),
            limits=limits,
            follow_redirects=False,
            verify=trust_for(self._base),
        )

    def put(self, name: str, data: bytes) -> None:
        self._put(name, data, {})

    def create(self, name: str, data: bytes) -> None:
        self._put(name, data, {"if-none-match": "*"})

    def get(self, name: str) -> bytes:
        response = self._send("GET", self._key(name))
        if response.status_code == 404:
            raise ObjectMissing(name)
        return response.content

    def list_objects(self, folder: str) -> Iterator[StoredObject]:
        token: str | None = None
        for _ in range(MAX_PAGES):
            query = {"list-type": "2", "prefix": self._root + folder, "max-keys": "1000"}
            if token is not None:
                query["continuation-token"] = token
            response = self._send("GET", "", query)
            if response.status_code == 404:
                raise store_refused(self.where, "there is no such bucket")
            found, following = self._read_listing(response.content)
            yield from found
            if following is None:
                return
            if following == token:
                break
            token = following
        raise store_refused(self.where, "its listing does not end")

    def delete(self, name: str) -> None:
        self._send("DELETE", self._key(name))

    def read_clock(self) -> float:
        return time.time() + self._skew

    def close(self) -> None:
        self._client.close()

    def _key(self, name: str) -> str:
        return self._root + check_object_name(name)

    def _put(self, name: str, data: bytes, headers: Mapping[str, str]) -> None:
        checksum = {"content-md5": b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()}
        response = self._send("PUT", self._key(name), body=data, headers={**headers, **checksum})
        if response.status_code == 412:
            # The answer to the first try may have been lost after the object was stored.
            if response.extensions.get("freehold.tries", 1) > 1 and self._has_bytes(name, data):
                return
            raise ObjectExists(name)
        if response.status_code == 404:
            raise store_refused(self.where, "there is no such bucket")

    def _has_bytes(self, name: str, data: bytes) -> bool:
        try:
            return self.get(name) == data
        except ObjectMissing:
            return False

    def _send(
        self,
        method: str,
        key: str,
        query: Mapping[str, str] | None = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """The answer when it is a success, 404 or 412. What may pass is tried again, with growing pauses."""
        pause = self._pause
        for number in range(1, TRIES + 1):
            try:
                response = self._send_once(method, key, query or {}, body, headers or {})
            except httpx2.HTTPError as error:
                trouble: FreeholdError | None = store_unreachable(self.where, str(error) or type(error).__name__)
            else:
                trouble = self._judge(response, is_conditional="if-none-match" in (headers or {}))
                response.extensions["freehold.tries"] = number
                if trouble is None:
                    return response
                if trouble.code not in ("backup.unreachable", "backup.lost"):
                    raise trouble
            if number == TRIES:
                break
            time.sleep(pause)
            pause = min(MAX_PAUSE, pause * 2)
        assert trouble is not None
        raise trouble

    def _send_once(
        self, method: str, key: str, query: Mapping[str, str], body: bytes, headers: Mapping[str, str]
    ) -> httpx2.Response:
        path = f"/{self._place.bucket}/{key}"
        moment = datetime.fromtimestamp(time.time() + self._skew, UTC)
        signed = sign_request(self._place.key, method, self._host, path, query, headers, body, moment)
        address = self._base + encode_path(path) + (f"?{encode_query(query)}" if query else "")
        most = MAX_OBJECT if method == "GET" and not query else _MAX_LISTING
        with self._client.stream(method, address, headers=signed, content=body) as response:
            self._note_clock(response)
            parts, size = [], 0
            for part in response.iter_raw():
                size += len(part)
                if size > most:
                    raise object_lost(self.where, key, f"has more than {most:,} bytes")
                parts.append(part)
        return httpx2.Response(
            response.status_code, headers={"x-code": _find_code(b"".join(parts[:1]))}, content=b"".join(parts)
        )

    def _note_clock(self, response: httpx2.Response) -> None:
        moment = email.utils.parsedate_tz(response.headers.get("date", ""))
        with suppress(ValueError, OverflowError):  # a date that does not exist
            skew = email.utils.mktime_tz(moment) - time.time() if moment is not None else None
            if skew is not None and abs(skew) < _MAX_SKEW:
                self._skew = skew if abs(skew) > 2.0 else 0.0

    def _judge(self, response: httpx2.Response, *, is_conditional: bool) -> FreeholdError | None:
        status, code = response.status_code, response.headers["x-code"]
        if status == 501 or code == "NotImplemented":  # it will not be implemented at the next try either
            why = f"{status} {code}".strip()
            if is_conditional:
                return store_without_conditions(self.where, f"does not support conditional writes ({why})")
            return store_refused(self.where, why)
        if status in (200, 204, 404, 412):
            return None if code != "NoSuchBucket" else store_refused(self.where, "there is no such bucket")
        if status == 409:  # another writer of the same name at the same moment
            return store_unreachable(self.where, code or "conflict")
        if code in _FULL or status == 507:
            return store_full(self.where, code or status)
        if status >= 500 or status in (408, 429) or code in _RETRIED:
            return store_unreachable(self.where, f"{status} {code}".strip())
        if code == "RequestTimeTooSkewed":  # the next try uses the clock of this answer
            return store_unreachable(self.where, "the clock of this machine is wrong")
        return store_refused(self.where, f"{status} {code}".strip())

    def _read_listing(self, content: bytes) -> tuple[list[StoredObject], str | None]:
        try:
            text = content.decode()
            if "<!" in text:  # a document type, with entities that could grow
                raise store_refused(self.where, "the listing is not what S3 sends")
            root = ElementTree.fromstring(text)  # noqa: S314 - without a document type there are no entities
        except (ElementTree.ParseError, UnicodeDecodeError) as error:
            raise store_refused(self.where, f"the listing is not valid XML ({error})") from error
        space = root.tag.rpartition("}")[0] + "}" if root.tag.startswith("{") else ""
        found = []
        for item in root.iter(f"{space}Contents"):
            key, size, at = (item.findtext(f"{space}{name}") or "" for name in ("Key", "Size", "LastModified"))
            name = key.removeprefix(self._root)
            if key.startswith(self._root) and is_object_name(name) and _SIZE.fullmatch(size):
                found.append(StoredObject(name, int(size), _parse_time(at)))
        cut = (root.findtext(f"{space}IsTruncated") or "").lower() == "true"
        token = root.findtext(f"{space}NextContinuationToken")
        if cut and not token:
            raise store_refused(self.where, "the listing is cut and cannot be continued")
        return found, token if cut else None


def _find_code(body: bytes) -> str:
    """The code of an error in XML."""
    _, begin, rest = body[:4096].partition(b"<Code>")
    code = rest.partition(b"</Code>")[0].decode("ascii", "replace") if begin else ""
    return code if code.isalnum() and len(code) < 60 else ""


def _parse_time(text: str) -> float:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
