"""Terminals inside: open one, leave it, view it again."""

import asyncio
from dataclasses import dataclass
from typing import Any

from freehold.computer.library import reply
from freehold.computer.library.link import Link
from freehold.computer.library.operation import ChannelOperation
from freehold.computer.library.stream import ChannelStream
from freehold.errors import FreeholdError


@dataclass(frozen=True)
class TerminalInfo:
    """A terminal as it is now. One that has ended is listed until a view has shown its end."""

    id: str
    pid: int
    command: tuple[str, ...]
    rows: int
    cols: int
    began: float
    viewers: int
    ended: bool


@dataclass(frozen=True)
class TerminalExit:
    code: int | None
    signal: int | None


class Terminal(ChannelOperation):
    """One view of a terminal. The terminal outlives this view and the link: `computer.attach(terminal.id)` opens another.

    `position` counts the bytes of output read so far, from the terminal's start. Pass it to `attach` to continue there.
    `skipped` counts the bytes that this view missed because it was too slow.
    """

    def __init__(self) -> None:
        self.output = ChannelStream()
        super().__init__(self.output)
        self.info: TerminalInfo | None = None
        self.position = 0
        self.skipped = 0
        self._exit: TerminalExit | None = None

    @classmethod
    async def open(cls, link: Link, request: dict[str, Any]) -> "Terminal":
        return await cls()._begin(link, request)

    @property
    def id(self) -> str:
        if self.info is None:
            raise FreeholdError("computer.no-terminal", "The terminal was not opened")
        return self.info.id

    async def read(self, most: int = 256 * 1024) -> bytes:
        """Output since the last read, at least one byte; empty once the terminal has ended."""
        data = await self.output.read(most)
        self.position += len(data)
        return data

    async def read_until(self, mark: bytes, most: int = 1024 * 1024) -> bytes:
        """All output up to and including `mark`, and whatever arrived together with it."""
        seen = bytearray()
        while mark not in seen:
            data = await self.read()
            if not data or len(seen) + len(data) > most:
                raise FreeholdError(
                    "computer.ended", f"The terminal did not show {mark!r}; it showed {bytes(seen[-200:])!r}"
                )
            seen += data
        return bytes(seen)

    async def write(self, data: bytes) -> None:
        """Send keystrokes. Waits while no program inside reads them."""
        await self._channel.write(data)

    def resize(self, rows: int, cols: int) -> None:
        self._channel.send_message({"rows": rows, "cols": cols})

    def signal(self, number: int, *, group: bool = True) -> None:
        """Send a signal to the foreground process group, or without `group` to the first program only."""
        self._channel.send_message({"signal": int(number), "group": group})

    async def wait(self) -> TerminalExit:
        """How its program ended. Read the output meanwhile: a terminal whose output is not read stops."""
        await asyncio.shield(self._over)
        if self._exit is None:
            raise self._error or FreeholdError("computer.ended", "This view of the terminal was closed")
        return self._exit

    async def detach(self) -> None:
        """Close this view; the terminal keeps running. Idempotent."""
        self._channel.close()
        self._finish(None)

    async def close(self) -> None:
        """Kill everything that runs in the terminal. Idempotent."""
        self._channel.send_message({"close": True})
        await self.detach()

    def data(self, stream: int, payload: memoryview) -> None:
        self._channel.link.use.touch()  # somebody watches it
        self.output.feed(bytes(payload))

    def end(self, stream: int) -> None:
        return

    def message(self, message: dict[str, Any]) -> None:
        self._error = self._error or reply.read_error(message)
        if "id" in message:
            self.info = read_terminal(message)
            self.position = reply.read_int(message, "position")
            if not self._started.done():
                self._started.set_result(None)
        elif "skipped" in message:
            skipped = reply.read_int(message, "skipped")
            self.skipped += skipped
            self.position += skipped
        elif "exit" in message:
            self._exit = TerminalExit(
                reply.read_optional_int(message, "exit"), reply.read_optional_int(message, "signal")
            )


def read_terminal(message: Any) -> TerminalInfo:
    if not isinstance(message, dict):
        raise FreeholdError("link.protocol", "The description of a terminal is not an object")
    return TerminalInfo(
        id=reply.read_text(message, "id"),
        pid=reply.read_int(message, "pid"),
        command=tuple(str(part) for part in reply.read_list(message, "argv")),
        rows=reply.read_int(message, "rows"),
        cols=reply.read_int(message, "cols"),
        began=reply.read_number(message, "began"),
        viewers=reply.read_int(message, "viewers"),
        ended=message.get("ended") is True,
    )
