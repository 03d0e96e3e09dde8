"""Limits on connections that are not authenticated yet, and temporary bans.

A flood of connections must not lock out the owner. So when all slots are taken, a new connection is not refused;
instead one connection of the address with the most is dropped, preferably one before its key exchange. Addresses from
which the owner has connected or requested a key are neither banned nor dropped early.
"""

import ipaddress
import random
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class ConnectionLimits:
    """`pending` counts connections that are not authenticated yet. Times are in seconds."""

    pending: int = 64
    pending_per_address: int = 32
    early_drop_from: int = 24
    """From this many pending connections on, unknown addresses are dropped at random; at `pending`, all of them."""
    connected: int = 512
    failures: int = 12
    """This many failures of one address within `window` ban it."""
    failures_total: int = 200
    window: float = 60.0
    ban: float = 60.0
    max_ban: float = 900.0
    addresses: int = 4096


class PendingConnection(Protocol):
    """What the limiter needs to know of a connection that is not authenticated yet."""

    address: str
    has_exchanged_keys: bool
    """Whether its key exchange is complete."""

    def drop(self) -> None: ...


def address_group(address: str) -> str:
    """The unit of a ban: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return str(ip.ipv4_mapped)
        return "::1" if ip.is_loopback else str(ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)


class ConnectionLimiter:
    def __init__(
        self,
        limits: ConnectionLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.limits = limits or ConnectionLimits()
        self._clock = clock
        self._chance = chance
        self._pending: list[PendingConnection] = []
        self._connected = 0
        self._owner: set[str] = set()
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._failed: deque[float] = deque(maxlen=self.limits.failures_total)
        self._bans: OrderedDict[str, tuple[float, float]] = OrderedDict()

    @property
    def pending(self) -> int:
        return len(self._pending)

    @property
    def connected(self) -> int:
        return self._connected

    def add_owner_addresses(self, addresses: Collection[str]) -> None:
        self._owner |= {address_group(address) for address in addresses}

    def is_banned(self, address: str) -> bool:
        until, _ = self._bans.get(address_group(address), (0.0, 0.0))
        return self._clock() < until

    def admit(self, newcomer: PendingConnection) -> bool:
        """Whether a new connection may authenticate. May drop another connection to free a slot."""
        group = address_group(newcomer.address)
        known = group in self._owner
        if not known and (self.is_banned(newcomer.address) or self._chance() < self._early_drop()):
            return False
        counts = Counter(address_group(one.address) for one in self._pending)
        if counts[group] >= self.limits.pending_per_address:
            self._drop_one(group)
        elif len(self._pending) >= self.limits.pending:
            most, count = counts.most_common(1)[0]
            if count <= 1 and not known:
                return False
            self._drop_one(most)
        self._pending.append(newcomer)
        return True

    def accept(self, connection: PendingConnection) -> bool:
        """The connection is authenticated. False when there are too many connections."""
        self._remove(connection)
        self.add_owner_addresses([connection.address])
        self._failures.pop(address_group(connection.address), None)
        self._bans.pop(address_group(connection.address), None)
        if self._connected >= self.limits.connected:
            return False
        self._connected += 1
        return True

    def release(self) -> None:
        """An accepted connection has ended."""
        self._connected -= 1

    def remove_pending(self, connection: PendingConnection, *, tried: bool) -> bool:
        """A connection ended unauthenticated. Returns whether that led to a ban; one that sent nothing has not `tried`."""
        self._remove(connection)
        if not tried:
            return False
        now, group = self._clock(), address_group(connection.address)
        self._failed.append(now)
        tries = self._failures.setdefault(group, deque(maxlen=self.limits.failures))
        self._failures.move_to_end(group)
        tries.append(now)
        while len(self._failures) > self.limits.addresses:
            self._failures.popitem(last=False)
        if group in self._owner or len(tries) < self.limits.failures or now - tries[0] > self.limits.window:
            return False
        tries.clear()
        _, previous = self._bans.pop(group, (0.0, 0.0))
        length = min(previous * 2 or self.limits.ban, self.limits.max_ban)
        self._bans[group] = (now + length, length)
        while len(self._bans) > self.limits.addresses:
            self._bans.popitem(last=False)
        return True

    def _early_drop(self) -> float:
        """The probability that a connection from an unknown address is refused at once."""
        limits = self.limits
        load = (len(self._pending) - limits.early_drop_from) / max(1, limits.pending - limits.early_drop_from)
        recent = len(self._failed) == limits.failures_total and self._clock() - self._failed[0] < limits.window
        return max(0.0, min(1.0, load), 0.9 if recent else 0.0)

    def _drop_one(self, group: str) -> None:
        candidates = [one for one in self._pending if address_group(one.address) == group]
        early = [one for one in candidates if not one.has_exchanged_keys]
        chosen = (early or candidates)[int(self._chance() * len(early or candidates))]
        self._remove(chosen)
        chosen.drop()

    def _remove(self, connection: PendingConnection) -> None:
        self._pending = [other for other in self._pending if other is not connection]
