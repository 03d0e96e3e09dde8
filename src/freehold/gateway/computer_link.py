"""The gateway's link to one computer, with the ports that it serves inside."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from freehold.computer import Computer
from freehold.computer.library.tunnel import TunnelHandler
from freehold.errors import FreeholdError

MIN_RETRY_DELAY = 0.05
MAX_RETRY_DELAY = 0.25
# How long a request waits for the first link after the start.
LINK_TIMEOUT = 1.0

log = logging.getLogger(__name__)


class ComputerLink:
    """Holds one link to the computer `name`, reconnects when it is lost, and serves `handlers` by port inside."""

    def __init__(self, name: str, socket: Path, handlers: Mapping[int, TunnelHandler]) -> None:
        self.name = name
        self._socket = socket
        self._handlers = handlers
        self._computer: Computer | None = None
        self._linked = asyncio.Event()

    @property
    def computer(self) -> Computer:
        """The connected computer. Raises `computer.not-connected`."""
        if self._computer is None or self._computer.state == "lost":
            raise FreeholdError(
                "computer.not-connected",
                f"The computer {self.name} is not connected",
                hint="The keeper restarts the computer main. freehold status shows its state",
            )
        return self._computer

    async def run(self) -> None:
        """Until cancelled."""
        async with await self._connect() as computer:
            self._computer = computer
            try:
                for port, handler in self._handlers.items():
                    await computer.listen(port, handler)
                self._linked.set()
                await asyncio.Event().wait()
            finally:
                self._computer = None

    async def wait_served(self) -> None:
        """Returns when there is a live link and the ports are served inside. A lost link is waited for."""
        await self._linked.wait()
        if self._computer is not None:
            await self._computer.wait_connected()

    async def wait_linked(self) -> bool:
        """Whether the first link is made. Waits for it up to LINK_TIMEOUT."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LINK_TIMEOUT):
                await self._linked.wait()
        return self._linked.is_set()

    async def _connect(self) -> Computer:
        """Make the first link. Later the computer's own connection reconnects."""
        wait = MIN_RETRY_DELAY
        while True:
            try:
                return await Computer.connect(self._socket)
            except (FreeholdError, OSError) as error:
                log.debug("the computer cannot be reached yet", extra={"computer": self.name, "error": str(error)})
            await asyncio.sleep(wait)
            wait = min(MAX_RETRY_DELAY, wait * 2)
