"""What a process and a view of a terminal have in common: one channel, and a life that ends with it."""

import asyncio
from types import TracebackType
from typing import Any, Self

from freehold.computer.library.channel import Channel, Receiver
from freehold.computer.library.link import Link
from freehold.computer.library.stream import ChannelStream
from freehold.errors import FreeholdError


class ChannelOperation(Receiver):
    """The host's side of an operation that the guest runs. A subclass reads its messages and sets `_started`.

    `streams` receive the channel's output: the first its stream 0, the second its stream 1.
    """

    def __init__(self, *streams: ChannelStream) -> None:
        loop = asyncio.get_running_loop()
        self._streams = streams
        self._open_channel: Channel | None = None
        self._started: asyncio.Future[None] = loop.create_future()
        self._over: asyncio.Future[None] = loop.create_future()
        self._error: FreeholdError | None = None

    async def _begin(self, link: Link, request: dict[str, Any]) -> Self:
        """Send the request and wait until the guest has started it. Raises the guest's error."""
        with link.use.hold():
            channel = self._open_channel = link.open(request, self)
            for number, stream in enumerate(self._streams):
                stream.attach(channel, number)
            try:
                await self._started
            except asyncio.CancelledError:
                channel.close()
                raise
        if self._error is not None:
            raise self._error
        return self

    @property
    def _channel(self) -> Channel:
        if self._open_channel is None:
            raise FreeholdError("computer.ended", f"This {type(self).__name__.lower()} was never started")
        return self._open_channel

    async def close(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def closed(self) -> None:
        self._finish(None)

    def lost(self, error: FreeholdError) -> None:
        self._finish(error)

    def _finish(self, error: FreeholdError | None) -> None:
        self._error = self._error or error
        for stream in self._streams:
            stream.end(error)
        for waiting in (self._started, self._over):
            if not waiting.done():
                waiting.set_result(None)
