"""What sessions stand on: the rooms of the house they use, named as narrowly as they are used."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from freehold.agents.approvals import Approval, Approvals
from freehold.agents.registry import Access
from freehold.agents.rpc import Json
from freehold.agents.store import EventRow, SessionRow, Store
from freehold.computer import Computer
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.manifest import Manifest


class Watchers(Protocol):
    """Everybody who looks on. Nothing here waits."""

    def events(self, session: str, events: list[EventRow]) -> None: ...

    def delta(self, session: str, data: Json) -> None: ...

    def session(self, row: SessionRow) -> None: ...

    def gone(self, session: str) -> None: ...

    def approval(self, approval: Approval) -> None: ...

    def installing(self, data: Json) -> None: ...


@dataclass(frozen=True)
class Spent:
    """What a turn cost, as the model gateway counted it. `cost` None: the price is not known."""

    input: int
    output: int
    cost: float | None


class Money(Protocol):
    """The model gateway, as sessions use it."""

    def access(self, provider: str | None, session: str, model: str | None) -> Access: ...

    def set_turn(self, session: str, turn: str | None) -> None: ...

    async def spent(self, session: str, turn: str) -> Spent | None: ...

    def blocked(self, session: str) -> FreeholdError | None:
        """What only the owner can change and stood in the way of the turn under way, such as a budget, or a provider that is away."""
        ...

    def end_session(self, session: str) -> None: ...

    def is_stopped(self) -> bool: ...


Servers = Callable[[str, bool, bool], list[Json]]
"""The MCP servers offered to a session, given its id, whether its agent speaks HTTP, and whether it fills in variables."""


P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Ground:
    home: Home
    manifest: Manifest
    store: Store
    approvals: Approvals
    watchers: Watchers
    money: Money
    computer: Callable[[], Computer]
    keeper: Callable[[str, dict[str, Any]], Awaitable[Any]]
    servers: Servers = lambda session, http, fills_in: []
    environment: Callable[[str], dict[str, str | None]] = lambda session: {}
    """What else the agent of a session finds in its environment."""
    forget: Callable[[str], None] = lambda session: None
    """A session's agent is gone, and with it what was given to it."""
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "agents"), init=False)

    async def on_disk(self, act: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """Blocking work of sessions, in threads of its own: many that write at once keep no request waiting."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(act, *args, **more))
