"""One operation on a link, seen from the host: two byte streams and JSON messages."""

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from freehold.computer.library import frames
from freehold.errors import FreeholdError

if TYPE_CHECKING:
    from freehold.computer.library.link import Link

_GRANT_AT = 64 * 1024


class Receiver(Protocol):
    """What a channel calls when something arrives. Called in the loop; must not block, and must `grant` consumed bytes.

    The payload of `data` is the link's own buffer and changes after the call: copy what you keep.
    """

    def data(self, stream: int, payload: memoryview) -> None: ...

    def end(self, stream: int) -> None: ...

    def message(self, message: dict[str, Any]) -> None: ...

    def closed(self) -> None:
        """The guest closed the channel; nothing more arrives."""
        ...

    def lost(self, error: FreeholdError) -> None:
        """The link was lost, and the channel with it."""
        ...


class Channel:
    """`allowed` counts the bytes that the guest may still send. A guest that sends more loses the link."""

    def __init__(self, link: "Link", number: int, receiver: Receiver, window: int) -> None:
        self.link = link
        self.number = number
        self.receiver = receiver
        self.allowed = [window, window]
        self._owed = [0, 0]
        self._credit = [frames.WINDOW, frames.WINDOW]
        self._credited: asyncio.Future[None] | None = None
        self.closed_by_host = False
        self.closed_by_guest = False
        self.is_use = True
        """Whether what is sent here counts as use of the computer, and wakes it."""

    @property
    def is_closed(self) -> bool:
        return self.closed_by_host or self.closed_by_guest

    def grant(self, stream: int, amount: int) -> None:
        """Let the guest send as many bytes as were consumed. Small amounts are added up first, to send fewer frames."""
        owed = self._owed[stream] + amount
        if owed < _GRANT_AT:
            self._owed[stream] = owed
            return
        self._owed[stream] = 0
        self.allowed[stream] += owed
        if not self.is_closed:
            self.link.send(frames.GRANT, self.number, frames.CREDIT.pack(stream, owed))

    def send_message(self, message: dict[str, Any]) -> None:
        if not self.is_closed:
            self._note_use()
            self.link.send(frames.MESSAGE, self.number, frames.encode_message(message))

    async def write(self, data: bytes | memoryview, stream: int = 0) -> None:
        """Returns when everything was sent; waits for credit from the guest and for the socket.

        Data for a closed channel is dropped without an error: the last message of the operation says how it ended.
        """
        view = memoryview(data)
        while view and not self.is_closed:
            room = min(self._credit[stream], frames.MAX_PAYLOAD)
            if room <= 0:
                await self._wait_for_credit()
                continue
            part = bytes(view[:room])
            view = view[room:]
            self._credit[stream] -= len(part)
            self._note_use()
            self.link.send(frames.SIDE if stream else frames.DATA, self.number, part)
            await self.link.drain()

    def send_end(self, stream: int = 0) -> None:
        if not self.is_closed:
            self._note_use()
            self.link.send(frames.END, self.number, bytes((stream,)))

    def _note_use(self) -> None:
        if self.is_use:
            self.link.use.touch()

    def close(self) -> None:
        """End the operation; the guest stops what it was doing. Idempotent."""
        if not self.closed_by_host:
            self.closed_by_host = True
            if not self.closed_by_guest:
                self.link.send(frames.CLOSE, self.number)
            self.link.settle(self)
            self._wake()

    def add_credit(self, stream: int, amount: int) -> None:
        self._credit[stream] += amount
        if self._credit[stream] > 2 * frames.MAX_WINDOW:
            raise frames.protocol_error("more credit than the largest window")
        self._wake()

    def close_by_guest(self) -> None:
        self.closed_by_guest = True
        self._wake()
        if not self.closed_by_host:
            try:
                self.receiver.closed()
            except FreeholdError as error:
                self.refuse(error)
            if not self.closed_by_host:
                self.close()

    def refuse(self, error: FreeholdError) -> None:
        """The guest's answer is not valid: end this operation with the error. The other channels go on."""
        if not self.closed_by_host:
            self.close()
            self.receiver.lost(error)

    def fail(self, error: FreeholdError) -> None:
        """The link was lost."""
        was_closed = self.is_closed
        self.closed_by_host = self.closed_by_guest = True
        self._wake()
        if not was_closed:
            self.receiver.lost(error)

    async def _wait_for_credit(self) -> None:
        if self._credited is None or self._credited.done():
            self._credited = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._credited)

    def _wake(self) -> None:
        if self._credited is not None and not self._credited.done():
            self._credited.set_result(None)
