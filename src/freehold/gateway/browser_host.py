"""The computers of browsers, started by the keeper, with egress as their only way out."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress

from freehold.browser.own_servers import OwnServers
from freehold.browser.section import BrowserSection
from freehold.computer import Computer
from freehold.computer.contract.conventions import EGRESS_PORT
from freehold.computer.library.tunnel import Tunnel
from freehold.errors import FreeholdError
from freehold.gateway.computer_access import ComputerAccess
from freehold.keeper.calls import KeeperCaller, RemoveKeptHome, StartComputer, StopComputer

START_TIMEOUT = 60.0
STOP_TIMEOUT = 60.0
DISK = 1024**3


class GatewayBrowserHost:
    """`computer_of` gives the computer in which a session works; `service_ports` are those of the owner's services."""

    def __init__(
        self,
        access: ComputerAccess,
        keeper: KeeperCaller,
        section: BrowserSection,
        image: str | None,
        computer_of: Callable[[str], Computer],
        service_ports: Collection[int],
    ) -> None:
        self._access = access
        self._keeper = keeper
        self._section = section
        self._image = image
        self._computer_of = computer_of
        self._service_ports = service_ports

    @asynccontextmanager
    async def open_computer(self, session: str, name: str) -> AsyncIterator[Computer]:
        servers = OwnServers(session, self._computer_of, self._service_ports)

        async def handle(stream: Tunnel) -> None:
            await self._access.handle_egress(stream, session=session, local_servers=servers)

        limits = {"memory": float(self._section.memory), "disk": float(DISK)}
        kept = name if self._section.profile == "kept" else None
        start = StartComputer(name, limits=limits, image=self._image, kept_home=kept, who=f"session:{session}")
        await self._keeper.call(start, timeout=START_TIMEOUT)
        try:
            async with self._access.link_computer(name, {EGRESS_PORT: handle}) as link:
                await link.wait_served()
                yield link.computer
        except BaseExceptionGroup as group:
            raise _find_cause(group) from None
        finally:
            with suppress(FreeholdError):  # it has ended already, or the keeper has
                async with asyncio.timeout(STOP_TIMEOUT):
                    await self._keeper.call(StopComputer(name), timeout=STOP_TIMEOUT)

    async def forget(self, name: str) -> None:
        with suppress(FreeholdError):
            await self._keeper.call(RemoveKeptHome(name))


def _find_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error of the block, which the link has put into a group; the group when there is more than that."""
    (first, *others) = group.exceptions
    return first if isinstance(first, FreeholdError) and not others else group
