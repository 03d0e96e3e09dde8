"""Who uses a computer, so that it can sleep while nobody does.

The process that started a computer may serve a *use socket* beside the computer's own (`serve_use`). Each client of the
computer keeps one connection to it. Lines of text:

    to the client     awake | asleep | ask
    from the client   unused SECONDS | wake

The first line is `awake`: a computer that sleeps is woken for a new client. `ask` means: how long has nobody used the
computer through you? After its answer a client says `wake` before it sends anything to the computer, until it reads
`awake`. It need not wait: what is sent to a sleeping computer is kept for it.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from freehold.errors import FreeholdError

GREETING_TIMEOUT = 10.0
MAX_LINE = 64


def use_socket(computer_socket: Path) -> Path:
    return computer_socket.with_name(f"{computer_socket.name}.use")


class ComputerUse(asyncio.Protocol):
    """A client's connection to the use socket. Without such a socket the computer never sleeps, and this does nothing.

    `touch` when something is sent, `hold` while somebody waits for the computer to work. `on_change` is called with
    True when it has fallen asleep, and with False when it is awake. `on_lost` is called when the connection has ended:
    from then on nobody asks this client, and the computer may sleep while it is used.
    """

    def __init__(
        self, on_change: Callable[[bool], None] = lambda _: None, on_lost: Callable[[], None] = lambda: None
    ) -> None:
        self._on_change = on_change
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._lost = asyncio.Event()
        self._inbox = b""
        self._awake: asyncio.Future[None] | None = None
        self._last_use = time.monotonic()
        self._holds = 0
        self._observations = 0
        self._is_asked = False
        self._must_wake = False
        """From an answer to `ask` until `awake`: the computer may sleep already, or in a moment."""
        self._is_asleep = False

    @property
    def is_connected(self) -> bool:
        return self._transport is not None

    @property
    def is_asleep(self) -> bool:
        """Whether it sleeps, or may in a moment. Whoever only looks at it waits then."""
        return self._is_asleep or self._must_wake

    async def connect(self, path: Path) -> None:
        """Returns when the computer is awake. Connects again when the connection was lost."""
        if self._transport is not None or not path.exists():
            return
        self._awake = asyncio.get_running_loop().create_future()
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: self, str(path))
        except OSError:  # no such socket: this computer does not sleep
            return
        try:
            async with asyncio.timeout(GREETING_TIMEOUT):
                await self._awake
        except TimeoutError:
            await self.close()
            raise FreeholdError(
                "computer.unresponsive",
                f"The computer did not wake within {GREETING_TIMEOUT:g} s",
                hint="freehold down",
            ) from None

    def touch(self, *, counts: bool = True) -> None:
        """Something is about to be sent. What does not count is sent all the same, and wakes the computer."""
        if counts:
            self._last_use = time.monotonic()
        if self._must_wake:
            self._must_wake = False
            self._send("wake")

    def hold(self) -> contextlib.AbstractContextManager[None]:
        """Keeps the computer awake, also if it was about to fall asleep."""
        return _Hold(self)

    def begin_hold(self) -> None:
        self._holds += 1
        self.touch()

    def end_hold(self) -> None:
        self._holds -= 1
        self._last_use = time.monotonic()

    @contextlib.contextmanager
    def observe(self) -> Iterator[None]:
        """A request that only looks. It does not count as use, and it has its answer before the computer sleeps."""
        self._observations += 1
        try:
            yield
        finally:
            self._observations -= 1
            if self._is_asked and not self._observations:
                self._answer()

    def hold_or_observe(self, counts: bool) -> contextlib.AbstractContextManager[None]:
        return self.hold() if counts else self.observe()

    @property
    def unused(self) -> float:
        """Seconds since the last use; 0 while there is one."""
        return 0.0 if self._holds else time.monotonic() - self._last_use

    async def close(self) -> None:
        """Idempotent."""
        if self._transport is not None:
            self._transport.abort()
            await self._lost.wait()

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._inbox = b""
        self._lost.clear()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._lost.set()
        self._is_asked = self._must_wake = False
        self._set_asleep(False)
        self._on_lost()

    def data_received(self, data: bytes) -> None:
        *lines, self._inbox = (self._inbox + data).split(b"\n")
        for line in lines:
            self._obey(line)

    def _obey(self, line: bytes) -> None:
        if line == b"ask":
            self._is_asked = True
            if not self._observations:
                self._answer()
        elif line == b"asleep":
            self._set_asleep(True)
        elif line == b"awake":
            self._is_asked = self._must_wake = False
            self._set_asleep(False)
            if self._awake is not None and not self._awake.done():
                self._awake.set_result(None)

    def _answer(self) -> None:
        self._is_asked = False
        self._must_wake = True
        self._send(f"unused {self.unused:.3f}")

    def _set_asleep(self, asleep: bool) -> None:
        if asleep != self._is_asleep:
            self._is_asleep = asleep
            self._on_change(asleep)

    def _send(self, line: str) -> None:
        if self._transport is not None:
            self._transport.write(line.encode() + b"\n")


class _Hold:
    """Around every command, so it is a class: a generator of `contextlib` takes three times as long."""

    __slots__ = ("_use",)

    def __init__(self, use: ComputerUse) -> None:
        self._use = use

    def __enter__(self) -> None:
        self._use.begin_hold()

    def __exit__(self, *_: object) -> None:
        self._use.end_hold()
