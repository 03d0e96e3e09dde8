# made from _async/channels.py by python -m tools.generate
"""How the owner is reached: `home.channels`."""

from collections.abc import Mapping, Sequence

from freehold.client._sync.connection import SyncConnection
from freehold.client.channel_models import ChannelInfo, ChannelPairing, ChannelRemoved, ChannelTest
from freehold.client.topic_protocol import quote_segment

CHANNELS = "/v1/channels"


class SyncChannels:
    """The token needs the scope `admin`."""

    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def list(self) -> list[ChannelInfo]:
        return self._connection.get(CHANNELS, list[ChannelInfo])

    def add(
        self,
        kind: str,
        settings: Mapping[str, str | int] | None = None,
        *,
        name: str | None = None,
        secret: str | None = None,
    ) -> ChannelInfo:
        """Add a channel. Its secret is kept in the vault. Nothing is sent until it is paired."""
        body = {"kind": kind, "name": name, "settings": dict(settings or {}), "secret": secret}
        return self._connection.post(CHANNELS, ChannelInfo, body)

    def pair(self, channel: str, address: str | None = None) -> ChannelPairing:
        """A one-time code. Matrix and e-mail need your own address."""
        return self._connection.post(f"{_path(channel)}/pair", ChannelPairing, {"address": address})

    def confirm(self, channel: str, code: str) -> ChannelInfo:
        """The code that was sent through the channel."""
        return self._connection.post(f"{_path(channel)}/confirm", ChannelInfo, {"code": code})

    def test(self, channel: str) -> ChannelTest:
        """Send a message now, and wait until the channel has it."""
        return self._connection.post(f"{_path(channel)}/test", ChannelTest, {})

    def set_preferences(
        self,
        channel: str,
        *,
        tells: Sequence[str],
        quiet_from: str | None = None,
        quiet_until: str | None = None,
        zone: str = "UTC",
        batch: int = 20,
        words: bool = True,
    ) -> ChannelInfo:
        """What is told through the channel, and when."""
        body = {
            "tells": list(tells),
            "quiet_from": quiet_from,
            "quiet_until": quiet_until,
            "zone": zone,
            "batch": batch,
            "words": words,
        }
        return self._connection.patch(f"{_path(channel)}/preferences", ChannelInfo, body)

    def remove(self, channel: str) -> ChannelRemoved:
        """Remove it with its secret and everything that waits for it."""
        return self._connection.delete(_path(channel), ChannelRemoved)


def _path(channel: str) -> str:
    return f"{CHANNELS}/{quote_segment(channel)}"
