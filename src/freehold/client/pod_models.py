"""The replies of the pods slot as frozen objects."""

from datetime import datetime
from typing import Any

from freehold.client.models import ApiModel


class DocumentRef(ApiModel):
    """A document or a folder, whose path ends with `/`."""

    path: str
    media: str | None
    etag: str | None
    size: int | None
    modified: datetime | None


class DocumentBytes(ApiModel):
    path: str
    media: str
    etag: str | None
    content: bytes


class RemovedDocument(ApiModel):
    path: str


class PodListPage(ApiModel):
    """Pass `cursor` to get the next page; None on the last one."""

    entries: tuple[DocumentRef, ...]
    cursor: str | None


class PodGrantInfo(ApiModel):
    agent: str
    folder: str
    mode: str
    granted: datetime
    session: str | None = None
    once: bool = False


class PodGrantListing(ApiModel):
    grants: tuple[PodGrantInfo, ...]


class PodAccessInfo(ApiModel):
    number: int
    at: datetime
    who: str
    agent: str | None
    act: str
    path: str


class PodAccessListPage(ApiModel):
    entries: tuple[PodAccessInfo, ...]
    cursor: int | None


class PodRecordPage(ApiModel):
    records: tuple[dict[str, Any], ...]
    cursor: str | None


class PodImportInfo(ApiModel):
    created: int
    replaced: int
    kept: int
