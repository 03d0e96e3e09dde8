"""The clients of a host: who is registered, how each is doing, and who has gone silent."""

import asyncio
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from freehold.errors import FreeholdError
from freehold.gateway.error_responses import RateLimited
from freehold.gateway.rate_limit import RateLimit
from freehold.mesh.facts import ClientFacts
from freehold.mesh.neighbours import Neighbours
from freehold.strict_json import decode, encode
from freehold.timeline import Timeline

MISSED = 3
"""Heartbeats that a client may miss."""
MAX_SWEEP = 10.0


@dataclass(frozen=True)
class RegisteredClient:
    """`heard` is when it last said that it lives, `alive` the same by a clock that nobody sets and that sleeps with this
    machine: a client cannot be heard meanwhile."""

    pubkey: str
    session: str
    registered: float
    heard: float
    facts: ClientFacts
    alive: float


class RegisteredClients:
    """The table of a host. A heartbeat changes memory only; who is registered survives a restart."""

    def __init__(
        self,
        timeline: Timeline,
        neighbours: Neighbours,
        heartbeat: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeline = timeline
        self._neighbours = neighbours
        self.heartbeat = heartbeat
        self._clock = clock
        self._rates = RateLimit(rate=0.2, burst=10)
        self._known: dict[str, RegisteredClient] = {}

    def load(self) -> None:
        """Blocks. Whoever was registered has its time to say so again."""
        now = time.time()
        rows = self._timeline.query("SELECT pubkey, session, registered, facts FROM mesh_client")
        for pubkey, session, registered, facts in rows:
            self._known[pubkey] = RegisteredClient(
                pubkey, session, registered, now, decode(ClientFacts, json.loads(facts)), self._clock()
            )

    def list(self) -> list[RegisteredClient]:
        return sorted(self._known.values(), key=lambda one: one.registered)

    async def register(self, pubkey: str, facts: ClientFacts) -> RegisteredClient:
        """One place for each neighbour: a second registration replaces the first."""
        wait = self._rates.wait(pubkey)
        if wait > 0:
            raise RateLimited("mesh.too-many", "You register too often", wait)
        now = time.time()
        made = RegisteredClient(pubkey, secrets.token_hex(16), now, now, facts, self._clock())
        await asyncio.to_thread(self._store, made)
        self._known[pubkey] = made
        return made

    def note_heartbeat(self, pubkey: str, session: str, health: str, load: float) -> None:
        """Raises `mesh.evicted` for a client that is not registered any more."""
        found = self._known.get(pubkey)
        if found is None or found.session != session:
            raise FreeholdError("mesh.evicted", "You are not registered here", hint="Register again")
        facts = replace(found.facts, health=health, load=load)
        self._known[pubkey] = replace(found, heard=time.time(), facts=facts, alive=self._clock())

    async def remove(self, pubkey: str, session: str | None, reason: str) -> None:
        """Idempotent. With a session, only that one."""
        found = self._known.get(pubkey)
        if found is not None and session in (None, found.session):
            del self._known[pubkey]
            await asyncio.to_thread(self._forget, found, reason)

    async def run(self) -> None:
        """Until cancelled: evicts who is silent, and who is no neighbour any more."""
        while True:
            await asyncio.sleep(min(MAX_SWEEP, self.heartbeat / 2))
            await self.remove_silent()

    async def remove_silent(self) -> None:
        limit = self._clock() - MISSED * self.heartbeat
        for one in self.list():
            if self._neighbours.find(one.pubkey) is None:
                self._known.pop(one.pubkey, None)
            elif one.alive < limit:
                await self.remove(one.pubkey, one.session, f"{MISSED} heartbeats are missing")

    def _store(self, one: RegisteredClient) -> None:
        with self._timeline.transaction() as tx:
            tx.execute(
                "INSERT OR REPLACE INTO mesh_client (pubkey, session, registered, heard, facts) VALUES (?, ?, ?, ?, ?)",
                (one.pubkey, one.session, one.registered, one.heard, json.dumps(encode(one.facts))),
            )
            tx.append("mesh.client_registered", {"name": self._name(one.pubkey), "version": one.facts.version})

    def _forget(self, one: RegisteredClient, reason: str) -> None:
        with self._timeline.transaction() as tx:
            tx.execute("DELETE FROM mesh_client WHERE pubkey = ? AND session = ?", (one.pubkey, one.session))
            tx.append("mesh.client_left", {"name": self._name(one.pubkey), "reason": reason})

    def _name(self, pubkey: str) -> str:
        found = self._neighbours.find(pubkey)
        return pubkey[:16] if found is None else found.name
