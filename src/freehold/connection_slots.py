"""The places that one listening port has for connections.

Nobody can keep others out by holding connections open. A connection that is new always gets a place; when none is left,
one that waits for its request is closed, then one whose request has no proven owner. Only what the owner is using now is
never closed for another. Without that rule some 70 idle sockets would close a page for everybody.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

HEAD_TIMEOUT = 10.0
"""Seconds from the connection, or from the last answer, to the end of the head of a request."""


@dataclass(eq=False)
class ConnectionSlot:
    """The place of one connection. `drop` closes it."""

    peer: str
    drop: Callable[[], None]
    slots: "ConnectionSlots"
    use: Literal["idle", "active", "kept", "released"] = "idle"

    def begin(self) -> None:
        """A request has arrived whole enough to be answered."""
        if self.use == "idle":
            self.slots.move(self, "active")

    def keep(self) -> None:
        """The owner has proven to be the sender. The connection is not closed for another until the answer is sent."""
        if self.use in ("idle", "active"):
            self.slots.move(self, "kept")

    def end(self) -> None:
        """The answer is sent; the connection waits for the next request."""
        if self.use in ("active", "kept"):
            self.slots.move(self, "idle")

    def release(self) -> None:
        """The connection is closed. Idempotent."""
        self.slots.remove(self)


@dataclass
class _Peer:
    # Dictionaries keep their order: the first has waited longest.
    idle: dict[ConnectionSlot, None] = field(default_factory=dict)
    active: dict[ConnectionSlot, None] = field(default_factory=dict)
    kept: dict[ConnectionSlot, None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.idle) + len(self.active) + len(self.kept)

    def find_victim(self) -> ConnectionSlot | None:
        return next(iter(self.idle), None) or next(iter(self.active), None)


class ConnectionSlots:
    """At most `total` connections, of which one peer has at most `per_peer`. `is_proxy` exempts a peer from the latter."""

    def __init__(self, total: int, per_peer: int, is_proxy: Callable[[str], bool] = lambda _peer: False) -> None:
        self._total = total
        self._per_peer = per_peer
        self._is_proxy = is_proxy
        self._peers: dict[str, _Peer] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def take(self, peer: str, drop: Callable[[], None]) -> ConnectionSlot | None:
        """A place for a new connection; None when all places are in use by the owner. May drop another connection."""
        own = self._peers.get(peer)
        if own is not None and len(own) >= self._per_peer and not self._is_proxy(peer):
            if not self._drop_one(own):
                return None
        elif self._count >= self._total and not self._drop_one_of_the_largest():
            return None
        slot = ConnectionSlot(peer, drop, self)
        self._peers.setdefault(peer, _Peer()).idle[slot] = None
        self._count += 1
        return slot

    def move(self, slot: ConnectionSlot, use: Literal["idle", "active", "kept"]) -> None:
        found = self._peers[slot.peer]
        del getattr(found, slot.use)[slot]
        getattr(found, use)[slot] = None
        slot.use = use

    def remove(self, slot: ConnectionSlot) -> None:
        if slot.use == "released":
            return
        found = self._peers[slot.peer]
        del getattr(found, slot.use)[slot]
        slot.use = "released"
        self._count -= 1
        if not len(found):
            del self._peers[slot.peer]

    def _drop_one(self, peer: _Peer) -> bool:
        victim = peer.find_victim()
        if victim is None:
            return False
        self.remove(victim)
        victim.drop()
        return True

    def _drop_one_of_the_largest(self) -> bool:
        return any(self._drop_one(peer) for peer in sorted(self._peers.values(), key=len, reverse=True))


SLOT_KEY = "connection-slot"


class SlottedConnection(asyncio.Protocol):
    """Goes before a protocol class of uvicorn: its connections have places, and the head of a request has a deadline.

    `head_timeout` is None for a class that has a deadline of its own.

    The application finds the place in the state of its scope: `keep_connection(scope)`.
    """

    slots: ConnectionSlots
    head_timeout: float | None = HEAD_TIMEOUT
    app_state: dict[str, Any]
    cycle: Any
    transport: asyncio.Transport
    _slot: ConnectionSlot | None = None
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._slot = self.slots.take(peer[0] if isinstance(peer, tuple) else "", self.transport.abort)
        if self._slot is None:
            self.transport.abort()
            return
        self.app_state = {**self.app_state, SLOT_KEY: self._slot}
        self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_deadline()
        if self._slot is not None:
            self._slot.release()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._slot is None or self._slot.use == "released":
            return
        super().data_received(data)
        if self.transport.get_protocol() is not self:  # it is a WebSocket now, and releases the place itself
            self._stop_deadline()
            self._slot.begin()
            return
        self._update_slot()

    def on_response_complete(self) -> None:
        super().on_response_complete()  # type: ignore[misc]
        self._update_slot()

    def _update_slot(self) -> None:
        assert self._slot is not None
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_deadline()
            self._slot.begin()
        else:
            self._slot.end()
            if self._deadline is None:
                self._start_deadline()

    def _start_deadline(self) -> None:
        if self.head_timeout is not None:
            self._deadline = asyncio.get_running_loop().call_later(self.head_timeout, self.transport.abort)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class SlottedSocket(asyncio.Protocol):
    """Goes before a WebSocket class of uvicorn: the place was taken by the HTTP connection that it was."""

    app_state: dict[str, Any]

    def connection_lost(self, exc: Exception | None) -> None:
        slot = self.app_state.get(SLOT_KEY)
        if slot is not None:
            slot.release()
        super().connection_lost(exc)


def keep_connection(scope: Any) -> None:
    """The owner has proven to be the sender of this request or socket. Does nothing under another server."""
    slot = scope.get("state", {}).get(SLOT_KEY)
    if slot is not None:
        slot.keep()
