"""The open connections, what they carried, and how they are cut."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from freehold.egress.names import Host, IPAddress
from freehold.egress.policy import EgressPolicy
from freehold.egress.stream import ByteStream
from freehold.errors import FreeholdError


@dataclass
class EgressCounters:
    """Counted since this process started. Read by metrics."""

    connections: int = 0
    allowed: int = 0
    refused: int = 0
    asked: int = 0
    revoked: int = 0
    malformed: int = 0
    bytes_up: int = 0
    bytes_down: int = 0


@dataclass(frozen=True)
class EgressLimits:
    """Counts, and times in seconds."""

    connections: int = 256
    waiting: int = 64
    head: float = 15.0
    connect: float = 10.0
    ask: float = 60.0
    idle: float = 600.0
    half_closed: float = 60.0
    total: float = 6 * 3600.0


class LocalServers(Protocol):
    """The servers that `localhost` means for a connection from another computer than the one in which they run."""

    async def connect(self, port: int) -> ByteStream:
        """Raises `egress.denied` for a port that is not for this connection."""
        ...


@dataclass(eq=False)
class EgressConnection:
    """One stream from inside. `host` is set when it is permitted; from then on a change of the rules may cut it.

    `session` is None for a program that belongs to no session, and after the session's agent has ended.
    """

    who: str
    counters: EgressCounters
    session: str | None = None
    local_servers: LocalServers | None = None
    """None: `localhost` is refused like every address that is not public."""
    local_port: int | None = None
    """Set instead of `host` when it leads to one of them."""
    host: Host | None = None
    port: int = 0
    once: bool = False
    is_named: bool = False
    """Whether a credential of the manifest names its host. Then only a rule that denies it cuts it."""
    refused: str | None = None
    """Why the host is not public, when it is an address that only a rule allows."""
    addresses: dict[IPAddress, str | None] = field(default_factory=dict)
    """The addresses that it leads to, each with the reason why it is not public, or None."""
    bytes_up: int = 0
    bytes_down: int = 0
    half_closed: bool = False
    answered: bool = False
    """Whether the client has begun to get a response. After that no error can be sent to it."""
    cut_because: str = ""
    opened: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    active: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    _scope: asyncio.Timeout | None = None

    def cut(self, because: str) -> None:
        """Ends the connection now. Call it in the loop's thread. Idempotent."""
        if not self.cut_because:
            self.cut_because = because
            if self._scope is not None:
                self._scope.reschedule(asyncio.get_running_loop().time())

    def sent(self, count: int) -> None:
        self.bytes_up += count
        self.counters.bytes_up += count
        self.active = asyncio.get_running_loop().time()

    def received(self, count: int) -> None:
        self.bytes_down += count
        self.counters.bytes_down += count
        self.active = asyncio.get_running_loop().time()

    def still_allowed(self, policy: EgressPolicy) -> bool:
        if self.host is None:
            return True
        decision = policy.decide(self.host, self.port, self.refused, self.session)
        if self.is_named:
            is_refused = decision.verdict == "deny" and decision.rule is not None
        else:
            is_refused = decision.verdict == "deny" or (decision.verdict == "ask" and not self.once)
        if is_refused:
            return False
        if self.host.address is not None:
            return True
        return all(
            policy.decide_address(address, self.port, refused, self.session).verdict == "allow"
            for address, refused in self.addresses.items()
        )


class Connections:
    """All open connections. Beyond the limit a new one is refused."""

    def __init__(self, limits: EgressLimits, counters: EgressCounters) -> None:
        self._limits = limits
        self._counters = counters
        self._open: set[EgressConnection] = set()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[EgressConnection]:
        return iter(tuple(self._open))

    @asynccontextmanager
    async def admit(self, who: str) -> AsyncIterator[EgressConnection]:
        """A slot for one connection. When it is cut, `TimeoutError` is raised inside the block."""
        if len(self._open) >= self._limits.connections:
            raise FreeholdError(
                "egress.too-many",
                f"{self._limits.connections} connections are already open",
                hint="Close some and try again",
            )
        connection = EgressConnection(who, self._counters)
        self._counters.connections += 1
        self._open.add(connection)
        try:
            async with asyncio.timeout(None) as connection._scope:
                yield connection
        finally:
            self._open.discard(connection)

    def revoke(self, policy: EgressPolicy) -> list[EgressConnection]:
        """Cuts every connection that the policy no longer allows, and returns them."""
        gone = [
            connection for connection in self if not connection.cut_because and not connection.still_allowed(policy)
        ]
        for connection in gone:
            self._counters.revoked += 1
            connection.cut("revoked")
        return gone

    def sweep(self) -> None:
        """Cuts connections that were idle or open for too long. Called every second."""
        now = asyncio.get_running_loop().time()
        for connection in self:
            idle = self._limits.half_closed if connection.half_closed else self._limits.idle
            if connection.host is not None and now - connection.active > idle:
                connection.cut("idle")
            elif now - connection.opened > self._limits.total:
                connection.cut("total")
