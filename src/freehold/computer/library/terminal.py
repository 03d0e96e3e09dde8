"""Terminals inside: opened, watched, left and found again."""

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from freehold.computer import answers
from freehold.computer.channel import Channel
from freehold.computer.link import Link
from freehold.computer.stream import Stream
from freehold.errors import FreeholdError


@dataclass(frozen=True)
class TerminalInfo:
    """A terminal as it is now. `ended` ones are kept until somebody has seen their end."""

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


class Terminal:
    """One view of a terminal. It outlives this view and the link: come back with `computer.attach(terminal.id)`.

    `position` is how much of its output was read in all; given to `attach`, nothing is seen twice.
    """

    def __init__(self) -> None:
        self.output = Stream()
        self.info: TerminalInfo | None = None
        self.position = 0
        self.skipped = 0
        self._channel: Channel | None = None
        loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = loop.create_future()
        self._over: asyncio.Future[None] = loop.create_future()
        self._error: FreeholdError | None = None
        self._exit: TerminalExit | None = None

    @classmethod
    async def open(cls, link: Link, request: dict[str, Any]) -> "Terminal":
        terminal = cls()
        terminal._channel = link.open(request, terminal)
        terminal.output.attach(terminal._channel, 0)
        try:
            await terminal._opened
        except asyncio.CancelledError:
            terminal._channel.close()
            raise
        if terminal._error is not None:
            raise terminal._error
        return terminal

    @property
    def id(self) -> str:
        if self.info is None:
            raise FreeholdError("computer.no-terminal", "The terminal was not opened")
        return self.info.id

    async def read(self, most: int = 256 * 1024) -> bytes:
        """What it showed since the last read, at least one byte; empty once it has ended."""
        data = await self.output.read(most)
        self.position += len(data)
        return data

    async def read_until(self, mark: bytes, most: int = 1024 * 1024) -> bytes:
        """Everything up to and with `mark`; what came with it beyond is returned too."""
        seen = bytearray()
        while mark not in seen:
            data = await self.read()
            if not data or len(seen) + len(data) > most:
                raise FreeholdError(
                    "computer.ended", f"The terminal never showed {mark!r}; it showed {bytes(seen[-200:])!r}"
                )
            seen += data
        return bytes(seen)

    async def write(self, data: bytes) -> None:
        """Keystrokes. Waits while nothing inside reads them."""
        await self._there.write(data)

    def resize(self, rows: int, cols: int) -> None:
        self._there.say({"rows": rows, "cols": cols})

    def signal(self, number: int) -> None:
        """To whatever is in the foreground."""
        self._there.say({"signal": int(number)})

    async def wait(self) -> TerminalExit:
        """How its program ended. Read the output meanwhile, or it will wait for you."""
        await asyncio.shield(self._over)
        if self._exit is None:
            raise self._error or FreeholdError("computer.ended", "This view of the terminal was closed")
        return self._exit

    async def detach(self) -> None:
        """Stop watching; the terminal goes on. Idempotent."""
        self._there.close()
        self._finish(None)

    async def close(self) -> None:
        """End everything that runs in it. Idempotent."""
        self._there.say({"close": True})
        await self.detach()

    @property
    def _there(self) -> Channel:
        if self._channel is None:
            raise FreeholdError("computer.no-terminal", "The terminal was not opened")
        return self._channel

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # What the channel calls

    def data(self, stream: int, payload: memoryview) -> None:
        self.output.put(bytes(payload))

    def end(self, stream: int) -> None:
        return

    def message(self, message: dict[str, Any]) -> None:
        self._error = self._error or answers.failure(message)
        if "id" in message:
            self.info = read_terminal(message)
            self.position = answers.whole(message, "position")
            if not self._opened.done():
                self._opened.set_result(None)
        elif "skipped" in message:
            skipped = answers.whole(message, "skipped")
            self.skipped += skipped
            self.position += skipped
        elif "exit" in message:
            self._exit = TerminalExit(answers.whole_or_none(message, "exit"), answers.whole_or_none(message, "signal"))

    def closed(self) -> None:
        self._finish(None)

    def lost(self, error: FreeholdError) -> None:
        self._finish(error)

    def _finish(self, error: FreeholdError | None) -> None:
        self._error = self._error or error
        self.output.end(error)
        for waiting in (self._opened, self._over):
            if not waiting.done():
                waiting.set_result(None)


def read_terminal(message: Any) -> TerminalInfo:
    if not isinstance(message, dict):
        raise FreeholdError("link.protocol", "The computer described a terminal that is none")
    return TerminalInfo(
        id=answers.text(message, "id"),
        pid=answers.whole(message, "pid"),
        command=tuple(str(part) for part in answers.items(message, "argv")),
        rows=answers.whole(message, "rows"),
        cols=answers.whole(message, "cols"),
        began=answers.number(message, "began"),
        viewers=answers.whole(message, "viewers"),
        ended=message.get("ended") is True,
    )
