"""The gateway's links to computers, with egress and the model gateway served in `main`."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta

from freehold.computer import Computer
from freehold.computer.contract.conventions import EGRESS_PORT, HOST_COMMANDS, MODEL_PORT
from freehold.computer.library.tunnel import Tunnel, TunnelHandler
from freehold.credentials.settings import read_credentials
from freehold.egress.connections import LocalServers
from freehold.egress.credentials import ProxyCredentials, read_credentials_key
from freehold.egress.keyring import HostCredential, Keyring
from freehold.egress.models import ModelGateway, read_limits, read_providers
from freehold.egress.service import EgressService, EgressSettings, EgressStatus
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.gateway.computer_link import ComputerLink
from freehold.home import MAIN_COMPUTER, Home
from freehold.manifest import Manifest
from freehold.observe.probes import ProbeResult
from freehold.timeline import Timeline

CONNECT_TIMEOUT = 15.0
"""Seconds for which a prompt waits for the computer: after a restart of the gateway, or of the computer."""


class ComputerAccess:
    """Holds a link to each computer that the gateway uses, by name. Egress and models are served in `main`.

    Each computer has its own ports: what is served in one is not reachable in another.
    """

    def __init__(self, home: Home, manifest: Manifest, timeline: Timeline) -> None:
        self._home = home
        self._settings = _egress_settings(manifest)
        self._timeline = timeline
        self.vault = Vault(home.vault)
        self._credentials: tuple[HostCredential, ...] = read_credentials(manifest)
        self.keyring = Keyring(self.vault, home.vault, home.agents)
        providers, overall = read_providers(manifest.models), read_limits(manifest.budget)
        kept = timedelta(seconds=manifest.retention.usage)
        self.models = ModelGateway(timeline, providers, self.vault, os.environ, overall=overall, roll_up_after=kept)
        self._egress: EgressService | None = None
        self._started = asyncio.Event()
        self.stop_report: str | None = None
        """What the kill switch did when it was pulled last, in words."""
        self.is_network_closed = False
        """Set by the kill switch until the computer has confirmed that no agent runs. Lifting the stop ends it too."""
        self.port_handlers: dict[int, TunnelHandler] = {}
        """Further ports inside `main` and their handlers. Add them before `run`."""
        self._main = ComputerLink(MAIN_COMPUTER, home.computer_socket(), self.port_handlers)
        self._links = {MAIN_COMPUTER: self._main}

    @property
    def computer(self) -> Computer:
        """The connected computer `main`. Raises `computer.not-connected`."""
        return self._main.computer

    def find_computer(self, name: str) -> Computer:
        """A connected computer by its name. Raises `computer.not-connected`."""
        link = self._links.get(name)
        if link is None:
            raise FreeholdError(
                "computer.not-connected",
                f"The gateway has no link to a computer {name[:100]!r}",
                hint=f"It has links to: {', '.join(self._links)}",
            )
        return link.computer

    @asynccontextmanager
    async def link_computer(self, name: str, handlers: Mapping[int, TunnelHandler]) -> AsyncIterator[ComputerLink]:
        """Hold a link to another computer of this Freehold, and serve `handlers` by port inside it only."""
        if name in self._links:
            raise FreeholdError("computer.name-taken", f"The gateway already has a link to the computer {name[:100]!r}")
        link = self._links[name] = ComputerLink(name, self._home.computer_socket(name), handlers)
        try:
            async with asyncio.TaskGroup() as group:
                running = group.create_task(link.run())
                try:
                    yield link
                finally:
                    running.cancel()
        finally:
            del self._links[name]

    @property
    def egress(self) -> EgressService:
        if self._egress is None:
            raise FreeholdError("egress.not-running", "Egress has not started", hint="Try again in a moment")
        return self._egress

    async def apply_manifest(self, manifest: Manifest) -> None:
        """Use these models, budgets and egress rules from now on."""
        self._settings = _egress_settings(manifest)
        self._credentials = read_credentials(manifest)
        if self._egress is not None:
            await self.keyring.set_credentials(self._credentials)
            await self._egress.set_settings(self._settings)
        await self.models.set_providers(read_providers(manifest.models), read_limits(manifest.budget))

    async def run(self) -> None:
        """Until cancelled."""
        async with AsyncExitStack() as stack:
            key = await asyncio.to_thread(read_credentials_key, self._home.vault)
            await self.keyring.set_credentials(self._credentials)
            egress = EgressService(
                self._timeline, self._settings, credentials=ProxyCredentials(key), keyring=self.keyring
            )
            self._egress = await stack.enter_async_context(egress)
            await stack.enter_async_context(self.models)
            self._started.set()
            self.port_handlers[EGRESS_PORT] = self.handle_egress
            self.port_handlers[MODEL_PORT] = self.models.handle
            await self._main.run()

    async def handle_egress(
        self, stream: Tunnel, *, session: str | None = None, local_servers: LocalServers | None = None
    ) -> None:
        """One connection from inside. `session`: it comes from a computer that belongs to this session alone."""
        if self.is_network_closed and self.models.stopped is not None:
            await stream.close()
        else:
            await self.egress.handle(stream, session=session, local_servers=local_servers)

    async def wait_for_link(self) -> None:
        """Return when the link is made, or after a timeout. Returns at once when there is no computer."""
        if self._home.computer_socket().exists():
            await self._main.wait_linked()

    async def wait_connected(self) -> None:
        """Return when programs inside can use everything that is served there, or after CONNECT_TIMEOUT."""
        with suppress(TimeoutError, FreeholdError):
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await self._main.wait_served()

    async def egress_changes(self) -> AsyncGenerator[EgressStatus, None]:
        """The state of egress now and after each change. Waits until it has started."""
        await self._started.wait()
        async for snapshot in self.egress.changes():
            yield snapshot

    async def probe_computer(self) -> ProbeResult | None:
        """Runs a program inside."""
        if not await self._main.wait_linked():
            return ProbeResult("starting")
        if not self.computer.is_asleep:  # it is well, and a probe is no reason to wake it
            await self.computer.run(["/bin/true"], timeout=2, apart=HOST_COMMANDS, counts_as_use=False)
        return None

    async def probe_egress(self) -> ProbeResult | None:
        if not await self._main.wait_linked():
            return ProbeResult("starting")
        return _answer(self.egress.status().mode)


def _egress_settings(manifest: Manifest) -> EgressSettings:
    return EgressSettings(manifest.egress.mode, tuple(manifest.egress.allow), tuple(manifest.egress.deny))


def _answer(mode: str) -> ProbeResult | None:
    return (
        ProbeResult("degraded", "egress.mode is allow: everything may leave the computer") if mode == "allow" else None
    )
