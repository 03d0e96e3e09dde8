"""The gateway's link to the computer, and the computer's only way out."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, suppress

from freehold.computer import Computer
from freehold.computer.tunnel import Handler
from freehold.egress.models import PORT as MODEL_PORT
from freehold.egress.models import ModelGateway, read_limits, read_providers
from freehold.egress.service import Egress, EgressSettings, Snapshot
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.manifest import Manifest
from freehold.observe.probes import Answer
from freehold.timeline import Timeline

PROXY_PORT = 3128
FIRST_RETRY = 0.05
LONGEST_RETRY = 0.25
# Who comes in the moments before the first link waits for it this long: what was just sealed is ready.
FIRST_LINK = 1.0

log = logging.getLogger("freehold.gateway.sealed")


class Sealed:
    """Holds one link to the computer, makes it again whenever it is lost, and serves egress and models through it."""

    def __init__(self, home: Home, manifest: Manifest, timeline: Timeline) -> None:
        self._home = home
        self._settings = EgressSettings(manifest.egress.mode, tuple(manifest.egress.allow), tuple(manifest.egress.deny))
        self._timeline = timeline
        self.vault = Vault(home.vault)
        providers, overall = read_providers(manifest.models), read_limits(manifest.budget)
        self.models = ModelGateway(timeline, providers, self.vault, os.environ, overall=overall)
        self._computer: Computer | None = None
        self._egress: Egress | None = None
        self._started = asyncio.Event()
        self.doors: dict[int, Handler] = {}
        """More ports inside, and who answers there; added before `run`."""
        self._linked = asyncio.Event()

    @property
    def computer(self) -> Computer:
        """The connected computer, or an error that says it is away."""
        if self._computer is None or self._computer.state == "lost":
            raise FreeholdError(
                "computer.not-connected",
                "The computer is not connected",
                hint="The keeper restarts it by itself; freehold status shows how it is",
            )
        return self._computer

    @property
    def egress(self) -> Egress:
        if self._egress is None:
            raise FreeholdError("egress.not-running", "Egress has not started", hint="Try again in a moment")
        return self._egress

    async def run(self) -> None:
        """Until cancelled."""
        async with AsyncExitStack() as stack:
            self._egress = await stack.enter_async_context(Egress(self._timeline, self._settings))
            await stack.enter_async_context(self.models)
            self._started.set()
            self._computer = await stack.enter_async_context(await self._connect())
            await self._computer.listen(PROXY_PORT, self._egress.handle)
            await self._computer.listen(MODEL_PORT, self.models.handle)
            for port, handler in self.doors.items():
                await self._computer.listen(port, handler)
            self._linked.set()
            await asyncio.Event().wait()

    async def first_link(self) -> None:
        """Returns once the link stands; soon, and without one, where there is no computer to link to."""
        if self._home.computer_socket.exists():
            await self._has_linked()

    async def egress_changes(self) -> AsyncGenerator[Snapshot, None]:
        """Egress now, then again after each change, from when it has started."""
        await self._started.wait()
        async for snapshot in self.egress.changes():
            yield snapshot

    async def _connect(self) -> Computer:
        """The first link; from then on the computer's own connection makes it again."""
        wait = FIRST_RETRY
        while True:
            try:
                return await Computer.connect(self._home.computer_socket)
            except (FreeholdError, OSError) as error:
                log.debug("the computer cannot be reached yet", extra={"error": str(error)})
            await asyncio.sleep(wait)
            wait = min(LONGEST_RETRY, wait * 2)

    async def probe_computer(self) -> Answer | None:
        """Really starts something inside."""
        if not await self._has_linked():
            return Answer("starting")
        await self.computer.run(["/bin/true"], timeout=2)
        return None

    async def probe_egress(self) -> Answer | None:
        if not await self._has_linked():
            return Answer("starting")
        return _answer(self.egress.snapshot().mode)

    async def _has_linked(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LINK):
                await self._linked.wait()
        return self._linked.is_set()


def _answer(mode: str) -> Answer | None:
    return Answer("degraded", "egress.mode is allow: everything may leave the computer") if mode == "allow" else None
