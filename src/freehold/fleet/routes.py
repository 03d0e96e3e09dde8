"""The fleet in the API: `/v1/fleet`. Codes with which machines join are made on the command line only."""

import asyncio
from datetime import datetime
from typing import Any, Literal

from fastapi import Request
from pydantic import BaseModel, Field

from freehold.agents.visible_text import make_visible
from freehold.errors import FreeholdError
from freehold.fleet.section import FleetSection
from freehold.fleet.status import ComputerRow, FleetStatus, MachineRow, NodeRow, WaitRow
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import RequestBody, UrlFlag, UrlName
from freehold.gateway.moments import to_moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, patch
from freehold.gateway.run_engine import SessionRunEngine
from freehold.strict_json import decode

MAX_LISTED = 500
"""Of the computers, and of those that wait. The page shows them all at once."""


class FleetNodeBody(BaseModel):
    name: str
    address: str
    state: Literal["ready", "draining", "away"]
    trouble: str = Field(description="Why it gets no computers, when it is away.")
    labels: dict[str, str]
    computers: int
    cpus: float
    free_cpus: float
    memory: int = Field(description="The bytes that it offers to computers.")
    free_memory: int
    gpus: int
    free_gpus: int


class FleetComputerBody(BaseModel):
    id: str
    name: str
    who: str = Field(description="Whose share it counts for: the owner, or `session:` and an id.")
    session: str | None = Field(description="The session whose agent works in it.")
    node: str
    state: Literal["waiting", "copying", "starting", "running", "ended"]
    cpus: float
    memory: int
    gpus: int


class FleetWaitBody(BaseModel):
    """A computer that waits for room."""

    id: str
    name: str
    who: str
    session: str | None
    priority: int
    since: datetime
    reason: str


class FleetMachineBody(BaseModel):
    """A machine that the autoscaler has started. Its name is that of its node."""

    name: str
    kind: str
    state: Literal["starting", "joined", "stopping"]
    trouble: str = Field(description="Why the command that ends it has failed.")


class FleetBody(BaseModel):
    """What the fleet is doing. Empty while this Freehold is not the head of one."""

    enabled: bool
    ready: bool = Field(description="Whether room can be found now. Computers that run do not need it.")
    nodes: list[FleetNodeBody]
    computers: list[FleetComputerBody] = Field(description="The first 500.")
    waiting: list[FleetWaitBody] = Field(description="The first 500, in the order of their turns.")
    computer_count: int
    waiting_count: int
    machines: list[FleetMachineBody]
    trouble: str = Field(description="Why no machine can be started now.")


class DrainNodeBody(RequestBody):
    draining: bool


class ChangedNodeBody(BaseModel):
    name: str
    computers: int = Field(description="How many are on it; of a node that was removed, how many are lost.")


class FleetRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services

    @get("/v1/fleet", scope="read")
    async def get_fleet(self) -> FleetBody:
        """The nodes, the computers on them, and what waits for room and why."""
        if not self._services.manifest.section(FleetSection).enabled:
            return FleetBody(
                enabled=False,
                ready=False,
                nodes=[],
                computers=[],
                waiting=[],
                computer_count=0,
                waiting_count=0,
                machines=[],
                trouble="",
            )
        found = decode(FleetStatus, await self._ask("status", most=MAX_LISTED))
        sessions = self._list_sessions()
        return FleetBody(
            enabled=True,
            ready=found.is_ready,
            nodes=[_describe_node(one) for one in found.nodes],
            computers=[_describe_computer(one, sessions.get(one.name)) for one in found.computers],
            waiting=[_describe_wait(one, sessions.get(one.name)) for one in found.waiting],
            computer_count=found.computer_count,
            waiting_count=found.waiting_count,
            machines=[_describe_machine(one) for one in found.machines],
            trouble=make_visible(found.trouble, lines=False),
        )

    @patch("/v1/fleet/nodes/{name}", scope="admin")
    async def drain_node(self, name: UrlName, body: DrainNodeBody, request: Request) -> ChangedNodeBody:
        """Give a node no more computers, or give it computers again. Those that it has stay until they end."""
        self._require_fleet()
        found = await self._ask("drain", node=name, off=not body.draining)
        await self._record("fleet.node_drained" if body.draining else "fleet.node_resumed", name, request)
        return ChangedNodeBody(name=name, computers=found["computers"])

    @delete("/v1/fleet/nodes/{name}", scope="admin")
    async def remove_node(self, name: UrlName, request: Request, lose: UrlFlag = False) -> ChangedNodeBody:
        """Remove a node. It must join again. One with computers is refused, unless with `lose` they are lost."""
        self._require_fleet()
        found = await self._ask("remove", node=name, lose=lose)
        await self._record("fleet.node_removed", name, request)
        return ChangedNodeBody(name=name, computers=found["computers"])

    def _require_fleet(self) -> None:
        self._services.manifest.section(FleetSection).require_enabled()

    async def _ask(self, do: str, **more: Any) -> Any:
        # What follows takes 10 MB, and most have no fleet.
        from freehold.fleet.fleet_client import ask_fleet
        from freehold.fleet.place import SOCKET

        try:
            async with asyncio.timeout(10):
                return await ask_fleet(self._services.home.run / SOCKET, do, **more)
        except TimeoutError:
            raise FreeholdError("fleet.not-running", "The fleet does not answer") from None

    async def _record(self, kind: str, name: str, request: Request) -> None:
        who = principal_of(request.scope).who
        await asyncio.to_thread(self._services.timeline.append, kind, {"node": name}, who=who)

    def _list_sessions(self) -> dict[str, str]:
        engine = self._services.slots.engine.engine
        return engine.list_sessions() if isinstance(engine, SessionRunEngine) else {}


def _describe_node(row: NodeRow) -> FleetNodeBody:
    """What a node reports of its versions may be in its trouble."""
    return FleetNodeBody(**{**vars(row), "trouble": make_visible(row.trouble, lines=False)})


def _describe_machine(row: MachineRow) -> FleetMachineBody:
    return FleetMachineBody(**{**vars(row), "trouble": make_visible(row.trouble, lines=False)})


def _describe_computer(row: ComputerRow, session: str | None) -> FleetComputerBody:
    return FleetComputerBody(**{**vars(row), "name": make_visible(row.name, lines=False)}, session=session)


def _describe_wait(row: WaitRow, session: str | None) -> FleetWaitBody:
    shown = {"name": make_visible(row.name, lines=False), "reason": make_visible(row.reason, lines=False)}
    return FleetWaitBody(**{**vars(row), **shown, "since": to_moment(row.since)}, session=session)
