"""How the owner is reached: `home.channels`."""

from collections.abc import Mapping, Sequence

from freehold.client._async.connection import AsyncConnection
from freehold.client.channel_models import ChannelInfo, ChannelPairing, ChannelRemoved, ChannelTest
from freehold.client.topic_protocol import quote_segment

CHANNELS = "/v1/channels"


class AsyncChannels:
    """The token needs the scope `admin`."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> list[ChannelInfo]:
        return await self._connection.get(CHANNELS, list[ChannelInfo])

    async def add(
        self,
        kind: str,
        settings: Mapping[str, str | int] | None = None,
        *,
        name: str | None = None,
        secret: str | None = None,
    ) -> ChannelInfo:
        """Add a channel. Its secret is kept in the vault. Nothing is sent until it is paired."""
        body = {"kind": kind, "name": name, "settings": dict(settings or {}), "secret": secret}
        return await self._connection.post(CHANNELS, ChannelInfo, body)

    async def pair(self, channel: str, address: str | None = None) -> ChannelPairing:
        """A one-time code. Matrix and e-mail need your own address."""
        return await self._connection.post(f"{_path(channel)}/pair", ChannelPairing, {"address": address})

    async def confirm(self, channel: str, code: str) -> ChannelInfo:
        """The code that was sent through the channel."""
        return await self._connection.post(f"{_path(channel)}/confirm", ChannelInfo, {"code": code})

    async def test(self, channel: str) -> ChannelTest:
        """Send a message now, and wait until the channel has it."""
        return await self._connection.post(f"{_path(channel)}/test", ChannelTest, {})

    async def set_preferences(
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
        return await self._connection.patch(f"{_path(channel)}/preferences", ChannelInfo, body)

    async def remove(self, channel: str) -> ChannelRemoved:
        """Remove it with its secret and everything that waits for it."""
        return await self._connection.delete(_path(channel), ChannelRemoved)


def _path(channel: str) -> str:
    return f"{CHANNELS}/{quote_segment(channel)}"
