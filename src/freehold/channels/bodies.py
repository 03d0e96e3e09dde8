"""The bodies of `/v1/channels`."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from freehold.channels.contract import ChannelKind, Tell
from freehold.channels.quiet_hours import MAX_BATCH, ChannelPreferences
from freehold.channels.store import ChannelRow
from freehold.channels.subscriptions import PushSubscription
from freehold.gateway.inputs import RequestBody
from freehold.gateway.moments import to_moment

SettingName = Annotated[str, Field(min_length=1, max_length=40)]
SettingText = Annotated[str, Field(max_length=400)]
SettingNumber = Annotated[int, Field(ge=0, le=65535)]


class ChannelPreferencesBody(BaseModel):
    """What is told through a channel, and when."""

    tells: list[Tell]
    quiet_from: str | None
    quiet_until: str | None
    zone: str
    batch: int
    words: bool


class ChannelInfoBody(BaseModel):
    """One channel. `owner` is null until it is paired. `settings` has no secret.

    `waiting` messages are not sent yet; `dropped` had no place. `strangers` counts messages of anybody else, who get no
    answer. `error` says why it is `away`.
    """

    name: str
    kind: Literal["email", "matrix", "nostr", "telegram", "webpush"]
    settings: dict[str, Any]
    preferences: ChannelPreferencesBody
    owner: str | None
    added: datetime
    paired: datetime | None
    state: Literal["ok", "away"]
    since: datetime
    error: str | None
    waiting: int
    strangers: int
    dropped: int


class ChannelPairingBody(BaseModel):
    """How the owner pairs a channel. `code` is null when it was sent through the channel and is typed in the page."""

    words: str
    code: str | None
    link: str | None
    expires: datetime


class ChannelTestBody(BaseModel):
    """The channel has taken a message."""

    sent: bool


class ChannelRemovedBody(BaseModel):
    name: str


class PushKeyBody(BaseModel):
    """The public key with which a browser subscribes."""

    key: str


class PushSubscriptionBody(BaseModel):
    """A browser that gets messages. `service` is the host of its push service."""

    id: str
    label: str
    service: str
    added: datetime


class AddChannelBody(RequestBody):
    kind: ChannelKind
    name: str | None = Field(default=None, min_length=1, max_length=32, description="Default: the kind.")
    settings: dict[SettingName, SettingText | SettingNumber] = Field(default_factory=dict, max_length=20)
    secret: str | None = Field(
        default=None, min_length=1, max_length=4000, description="The token or password. It is kept in the vault."
    )


class PairChannelBody(RequestBody):
    address: str | None = Field(
        default=None,
        min_length=3,
        max_length=400,
        description="Your own address, for Matrix and e-mail. For Nostr your `npub`, if only that may pair.",
    )


class ConfirmChannelBody(RequestBody):
    code: str = Field(min_length=1, max_length=40)


class SetChannelPreferencesBody(RequestBody):
    tells: list[Tell] = Field(max_length=10)
    quiet_from: str | None = Field(default=None, max_length=5, description="`22:00`, in `zone`.")
    quiet_until: str | None = Field(default=None, max_length=5)
    zone: str = Field(default="UTC", min_length=1, max_length=60)
    batch: int = Field(default=20, ge=0, le=MAX_BATCH, description="Seconds for which news is collected.")
    words: bool = Field(default=True, description="Whether messages have the words of agents.")

    def read(self) -> ChannelPreferences:
        return ChannelPreferences(
            tuple(dict.fromkeys(self.tells)), self.quiet_from, self.quiet_until, self.zone, self.batch, self.words
        )


class AddPushSubscriptionBody(RequestBody):
    """As the browser gives it."""

    endpoint: str = Field(min_length=10, max_length=1000)
    p256dh: str = Field(min_length=80, max_length=100)
    auth: str = Field(min_length=16, max_length=40)
    label: str = Field(default="", max_length=80)


def describe_channel(row: ChannelRow, waiting: int) -> ChannelInfoBody:
    return ChannelInfoBody(
        name=row.name,
        kind=row.kind,
        settings=dict(row.settings),
        preferences=ChannelPreferencesBody(**row.preferences.as_json()),
        owner=None if row.owner is None else row.owner.sender,
        added=to_moment(row.added),
        paired=None if row.paired is None else to_moment(row.paired),
        state="ok" if row.problem is None else "away",
        since=to_moment(row.since),
        error=row.problem,
        waiting=waiting,
        strangers=row.strangers,
        dropped=row.dropped,
    )


def describe_subscription(one: PushSubscription) -> PushSubscriptionBody:
    from urllib.parse import urlsplit

    return PushSubscriptionBody(
        id=one.id, label=one.label, service=urlsplit(one.endpoint).hostname or "", added=to_moment(one.added)
    )
