# made from _async/pods.py by python -m tools.generate
"""Personal data: `home.pods`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from freehold.client._sync.connection import SyncConnection
from freehold.client.pod_models import (
    DocumentBytes,
    DocumentRef,
    PodAccessListPage,
    PodGrantInfo,
    PodGrantListing,
    PodImportInfo,
    PodListPage,
    PodRecordPage,
    RemovedDocument,
)
from freehold.errors import FreeholdError

PODS = "/v1/slots/pods"


class SyncPods:
    """The token needs the scope `pods`; grants are read with it, and changed with the scope `admin`."""

    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def list(
        self, folder: str = "", *, media: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> PodListPage:
        """What is in a folder; with `media`, such as `image/*`, all documents of this type below it."""
        query = {"folder": folder, "media": media, "limit": limit, "cursor": cursor}
        return self._connection.get(f"{PODS}/list", PodListPage, query)

    def read(self, path: str) -> DocumentBytes:
        headers, content = self._connection.download(_path(path))
        return DocumentBytes(
            path=path, media=headers.get("content-type", ""), etag=headers.get("etag"), content=content
        )

    def write(
        self,
        path: str,
        content: bytes | str,
        *,
        media: str = "text/plain",
        if_match: str | None = None,
        is_new: bool = False,
        key: str | None = None,
    ) -> DocumentRef:
        """Write a whole document. Raises `pods.conflict` when a condition does not hold."""
        headers = {
            "content-type": media,
            "if-match": if_match,
            "if-none-match": "*" if is_new else None,
            "idempotency-key": key,
        }
        raw = content.encode() if isinstance(content, str) else content
        return self._connection.upload("PUT", _path(path), DocumentRef, raw, headers)

    def patch(self, path: str, operations: str, *, if_match: str | None = None, n3: bool = False) -> DocumentRef:
        """Change a part of a document: by JSON Patch, or by N3 Patch where a Solid server keeps it."""
        media = "text/n3" if n3 else "application/json-patch+json"
        headers = {"content-type": media, "if-match": if_match}
        return self._connection.upload("PATCH", _path(path), DocumentRef, operations.encode(), headers)

    def create_folder(self, folder: str) -> DocumentRef:
        return self._connection.upload("PUT", _path(folder.removesuffix("/") + "/"), DocumentRef, b"", {})

    def delete(self, path: str) -> None:
        """A document, or an empty folder."""
        self._connection.delete(_path(path), RemovedDocument)

    def grants(self, agent: str | None = None) -> tuple[PodGrantInfo, ...]:
        return (self._connection.get(f"{PODS}/grants", PodGrantListing, {"agent": agent})).grants

    def grant(self, agent: str, folder: str, mode: str = "read") -> tuple[PodGrantInfo, ...]:
        """Let an agent reach a folder. Returns its grants."""
        body = {"agent": agent, "folder": folder, "mode": mode}
        return (self._connection.post(f"{PODS}/grants", PodGrantListing, body)).grants

    def revoke(self, agent: str, folder: str) -> tuple[PodGrantInfo, ...]:
        body = {"agent": agent, "folder": folder}
        return (self._connection.post(f"{PODS}/grants/revoke", PodGrantListing, body)).grants

    def access(
        self, *, folder: str | None = None, agent: str | None = None, limit: int = 100, before: int | None = None
    ) -> PodAccessListPage:
        """Who reached what, the newest first."""
        query = {"folder": folder, "agent": agent, "limit": limit, "before": before}
        return self._connection.get(f"{PODS}/access", PodAccessListPage, query)

    def export(self) -> Iterator[dict[str, Any]]:
        cursor = None
        while True:
            page = self._connection.get(f"{PODS}/export", PodRecordPage, {"cursor": cursor})
            yield from page.records
            cursor = page.cursor
            if cursor is None:
                return

    def import_records(self, records: Sequence[Mapping[str, Any]]) -> PodImportInfo:
        """Store records of an export, at most 20 at once."""
        body = {"records": [dict(record) for record in records]}
        return self._connection.post(f"{PODS}/import", PodImportInfo, body)


def _path(path: str) -> str:
    """An address in which `..` goes up would be another address of the API."""
    if {".", ".."} & {*path.split("/")}:
        raise FreeholdError(
            "pods.invalid",
            f"{path[:200]!a} is not a path: no part of it is . or ..",
            hint="Give the path from the root of the pod",
            kind="invalid",
        )
    return f"{PODS}/data/{quote(path, safe='/')}"
