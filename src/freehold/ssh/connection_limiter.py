"""Who may try: bounds on connections that have not proven who they are, and temporary bans.

A flood must cost the flooder and never the owner. So nobody is refused for being late: when there is no room, a
connection of whoever holds the most is dropped, and rather one that has not got far. Addresses from which the owner
was let in before, or asked for a key, are neither banned nor dropped early.
"""

import ipaddress
import random
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class GateLimits:
    """How many connections may be there without proof, and what failed tries lead to."""

    waiting: int = 64
    waiting_each: int = 32
    early_drop: int = 24
    """From so many on, newcomers whom the owner never used are dropped at random, all of them at `waiting`."""
    connected: int = 512
    failures: int = 12
    """Failed tries of one address within the window that ban it."""
    failures_total: int = 200
    window: float = 60.0
    ban: float = 60.0
    longest_ban: float = 900.0
    remembered: int = 4096


class Waiting(Protocol):
    """A connection as the gate sees it."""

    address: str
    keyed: bool
    """Whether it has done the work of a key exchange."""

    def drop(self) -> None: ...


def group_of(address: str) -> str:
    """What is banned together: an IPv4 address, or the /64 that one IPv6 subscriber has."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return str(ip.ipv4_mapped)
        return "::1" if ip.is_loopback else str(ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)


class Gate:
    def __init__(
        self,
        limits: GateLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.limits = limits or GateLimits()
        self._clock = clock
        self._chance = chance
        self._waiting: list[Waiting] = []
        self._connected = 0
        self._owner: set[str] = set()
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._failed: deque[float] = deque(maxlen=self.limits.failures_total)
        self._bans: OrderedDict[str, tuple[float, float]] = OrderedDict()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def connected(self) -> int:
        return self._connected

    def know_owner(self, addresses: Collection[str]) -> None:
        self._owner |= {group_of(address) for address in addresses}

    def banned(self, address: str) -> bool:
        until, _ = self._bans.get(group_of(address), (0.0, 0.0))
        return self._clock() < until

    def admit(self, newcomer: Waiting) -> bool:
        """Whether it may try. May drop another one to make room."""
        group = group_of(newcomer.address)
        known = group in self._owner
        if not known and (self.banned(newcomer.address) or self._chance() < self._early_drop()):
            return False
        held = Counter(group_of(one.address) for one in self._waiting)
        if held[group] >= self.limits.waiting_each:
            self._drop_one(group)
        elif len(self._waiting) >= self.limits.waiting:
            most, count = held.most_common(1)[0]
            if count <= 1 and not known:
                return False
            self._drop_one(most)
        self._waiting.append(newcomer)
        return True

    def let_in(self, one: Waiting) -> bool:
        """It has proven itself. False when there are too many connections already."""
        self._remove(one)
        self.know_owner([one.address])
        self._failures.pop(group_of(one.address), None)
        self._bans.pop(group_of(one.address), None)
        if self._connected >= self.limits.connected:
            return False
        self._connected += 1
        return True

    def left(self) -> None:
        """One that was let in is gone."""
        self._connected -= 1

    def gave_up(self, one: Waiting, *, tried: bool) -> bool:
        """It ended without proof; says whether that led to a ban. One that never said a word has not `tried`."""
        self._remove(one)
        if not tried:
            return False
        now, group = self._clock(), group_of(one.address)
        self._failed.append(now)
        tries = self._failures.setdefault(group, deque(maxlen=self.limits.failures))
        self._failures.move_to_end(group)
        tries.append(now)
        while len(self._failures) > self.limits.remembered:
            self._failures.popitem(last=False)
        if group in self._owner or len(tries) < self.limits.failures or now - tries[0] > self.limits.window:
            return False
        tries.clear()
        _, former = self._bans.pop(group, (0.0, 0.0))
        length = min(former * 2 or self.limits.ban, self.limits.longest_ban)
        self._bans[group] = (now + length, length)
        while len(self._bans) > self.limits.remembered:
            self._bans.popitem(last=False)
        return True

    def _early_drop(self) -> float:
        """How likely a stranger is turned away at once: by how many wait, or by how many failed of late in total."""
        limits = self.limits
        crowd = (len(self._waiting) - limits.early_drop) / max(1, limits.waiting - limits.early_drop)
        recent = len(self._failed) == limits.failures_total and self._clock() - self._failed[0] < limits.window
        return max(0.0, min(1.0, crowd), 0.9 if recent else 0.0)

    def _drop_one(self, group: str) -> None:
        candidates = [one for one in self._waiting if group_of(one.address) == group]
        early = [one for one in candidates if not one.keyed]
        chosen = (early or candidates)[int(self._chance() * len(early or candidates))]
        self._remove(chosen)
        chosen.drop()

    def _remove(self, one: Waiting) -> None:
        self._waiting = [other for other in self._waiting if other is not one]
