"""One operation's two streams and its messages, on the host's side of a link."""

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from freehold.computer import frames
from freehold.errors import FreeholdError

if TYPE_CHECKING:
    from freehold.computer.link import Link

_GRANT_AT = 64 * 1024


class Receiver(Protocol):
    """What a channel's user is told. Called in the loop; must not wait, and must `grant` what it has used up.

    The payload of `data` is the link's own buffer: copy what is to be kept.
    """

    def data(self, stream: int, payload: memoryview) -> None: ...

    def end(self, stream: int) -> None: ...

    def message(self, message: dict[str, Any]) -> None: ...

    def closed(self) -> None:
        """The guest closed the channel: nothing more will come."""
        ...

    def lost(self, error: FreeholdError) -> None:
        """The link is gone, and the channel with it."""
        ...


class Channel:
    """`allowed` is what the guest may still send; a guest that sends more is cut off."""

    def __init__(self, link: "Link", number: int, receiver: Receiver, window: int) -> None:
        self.link = link
        self.number = number
        self.receiver = receiver
        self.allowed = [window, window]
        self._owed = [0, 0]
        self._credit = [frames.WINDOW, frames.WINDOW]
        self._credited: asyncio.Future[None] | None = None
        self.closed_here = False
        self.closed_there = False

    @property
    def over(self) -> bool:
        return self.closed_here or self.closed_there

    def grant(self, stream: int, amount: int) -> None:
        """Give back what was consumed. Small amounts are gathered, so that a chatty stream costs few frames."""
        owed = self._owed[stream] + amount
        if owed < _GRANT_AT:
            self._owed[stream] = owed
            return
        self._owed[stream] = 0
        self.allowed[stream] += owed
        if not self.over:
            self.link.send(frames.GRANT, self.number, frames.CREDIT.pack(stream, owed))

    def say(self, message: dict[str, Any]) -> None:
        if not self.over:
            self.link.send(frames.MESSAGE, self.number, frames.encode_message(message))

    async def write(self, data: bytes | memoryview, stream: int = 0) -> None:
        """Returns when everything is on its way; waits for the guest's credit and for the socket.

        Silently drops what the guest no longer wants: how the operation ended is told by its last message.
        """
        view = memoryview(data)
        while view and not self.over:
            room = min(self._credit[stream], frames.MAX_PAYLOAD)
            if room <= 0:
                await self._wait_for_credit()
                continue
            part = bytes(view[:room])
            view = view[room:]
            self._credit[stream] -= len(part)
            self.link.send(frames.SIDE if stream else frames.DATA, self.number, part)
            await self.link.drain()

    def send_end(self, stream: int = 0) -> None:
        if not self.over:
            self.link.send(frames.END, self.number, bytes((stream,)))

    def close(self) -> None:
        """Give up on the operation; the guest ends what it was doing. Idempotent."""
        if not self.closed_here:
            self.closed_here = True
            if not self.closed_there:
                self.link.send(frames.CLOSE, self.number)
            self.link.settle(self)
            self._wake()

    def credited(self, stream: int, amount: int) -> None:
        self._credit[stream] += amount
        if self._credit[stream] > 2 * frames.MAX_WINDOW:
            raise frames.protocol_error("credit beyond any window")
        self._wake()

    def ended_there(self) -> None:
        self.closed_there = True
        self._wake()
        if not self.closed_here:
            self.receiver.closed()
            if not self.closed_here:
                self.close()

    def abandon(self, error: FreeholdError) -> None:
        """The link is gone."""
        told = self.over
        self.closed_here = self.closed_there = True
        self._wake()
        if not told:
            self.receiver.lost(error)

    async def _wait_for_credit(self) -> None:
        if self._credited is None or self._credited.done():
            self._credited = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._credited)

    def _wake(self) -> None:
        if self._credited is not None and not self._credited.done():
            self._credited.set_result(None)
