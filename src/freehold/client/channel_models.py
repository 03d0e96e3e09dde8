"""The replies about channels as frozen objects."""

from datetime import datetime
from typing import Any

from freehold.client.models import ApiModel


class ChannelPreferencesInfo(ApiModel):
    """What is told through a channel, and when."""

    tells: tuple[str, ...]
    quiet_from: str | None
    quiet_until: str | None
    zone: str
    batch: int
    words: bool


class ChannelInfo(ApiModel):
    """One way to reach the owner. `owner` is None until it is paired."""

    name: str
    kind: str
    settings: dict[str, Any]
    preferences: ChannelPreferencesInfo
    owner: str | None
    added: datetime
    paired: datetime | None
    state: str
    since: datetime
    error: str | None
    waiting: int
    strangers: int
    dropped: int


class ChannelPairing(ApiModel):
    """`code` is None when it was sent through the channel: give it to `confirm`."""

    words: str
    code: str | None
    link: str | None
    expires: datetime


class ChannelTest(ApiModel):
    sent: bool


class ChannelRemoved(ApiModel):
    name: str
