"""The replies of slots as frozen objects."""

from datetime import datetime
from typing import Any, Literal

from freehold.client.models import ApiModel


class BeadInfo(ApiModel):
    """A work item."""

    id: str
    title: str
    description: str
    kind: str
    priority: int
    status: str
    holder: str | None
    parent: str | None
    labels: tuple[str, ...]
    needs: tuple[str, ...]
    related: tuple[str, ...]
    sessions: tuple[str, ...]
    blocked: bool
    created: datetime
    created_by: str
    updated: datetime
    closed: datetime | None
    close_reason: str | None
    evidence: str | None
    version: int


class BeadCommentInfo(ApiModel):
    number: int
    at: datetime
    author: str
    text: str


class BeadChangeInfo(ApiModel):
    version: int
    at: datetime
    who: str
    action: str
    fields: dict[str, Any]


class BeadView(ApiModel):
    """An item with everything about it. `blocks` are the items that need it."""

    bead: BeadInfo
    children: tuple[str, ...]
    blocks: tuple[str, ...]
    comments: tuple[BeadCommentInfo, ...]
    history: tuple[BeadChangeInfo, ...]


class BeadFileChange(ApiModel):
    """A state of the files that history recorded while a session worked on an item. `entry` is its number there."""

    entry: int
    at: datetime
    session: str
    added: int
    changed: int
    removed: int


class BeadListPage(ApiModel):
    """Pass `cursor` to get the next page; None on the last one."""

    beads: tuple[BeadInfo, ...]
    cursor: str | None


class BeadRecordPage(ApiModel):
    records: tuple[dict[str, Any], ...]
    cursor: str | None


class BeadImportInfo(ApiModel):
    created: int
    replaced: int
    kept: int


class BeadWork(ApiModel):
    """The session that now works on an item."""

    bead: BeadInfo
    session: str
    turn: int


class CloudEventInfo(ApiModel):
    """An event, as CloudEvents 1.0 writes it. `sequence` is its place in the log."""

    sequence: int
    specversion: str
    id: str
    source: str
    type: str
    time: datetime
    datacontenttype: str
    actor: str
    data: dict[str, Any]
    subject: str | None = None
    timelineseq: int | None = None
    imported: bool = False


class EventListPage(ApiModel):
    """Pass `cursor` as `after` to read on. `missed` events are not kept any more."""

    events: tuple[CloudEventInfo, ...]
    cursor: int
    missed: int


class PublishedEventInfo(ApiModel):
    id: str
    type: str
    subject: str | None
    at: datetime


class DeliveryInfo(ApiModel):
    """Where events are sent, and how far that is."""

    sink: str
    target: str
    state: str
    since: datetime
    delivered: int
    waiting: int
    dead: int
    dropped: int
    error: str | None


class DeadLetterInfo(ApiModel):
    sequence: int
    event: CloudEventInfo
    at: datetime
    error: str
    again: bool


class DeadLetterListPage(ApiModel):
    letters: tuple[DeadLetterInfo, ...]
    cursor: int | None


class DeadLetterCount(ApiModel):
    count: int


class EventRecordPage(ApiModel):
    records: tuple[dict[str, Any], ...]
    cursor: str | None


class EventImportInfo(ApiModel):
    created: int
    kept: int


class SlotInfo(ApiModel):
    """One slot. `implementation` is what keeps it, and `error` why it cannot be reached."""

    name: str
    mode: Literal["local", "external", "off"]
    implementation: str
    state: Literal["off", "starting", "ok", "unavailable"]
    since: datetime
    error: str | None
    required: bool
    privacy: Literal["strict", "soft", "off"]
    contract: int | None
