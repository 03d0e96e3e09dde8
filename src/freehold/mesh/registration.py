"""A client's place at its host: registers, sends heartbeats, and comes back after every loss."""

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from freehold.errors import FreeholdError
from freehold.mesh.facts import ClientFacts
from freehold.mesh.neighbours import Neighbour, Neighbours
from freehold.mesh.peer_address import same_address
from freehold.strict_json import encode
from freehold.timeline import Timeline

MIN_WAIT, MAX_WAIT = 2.0, 300.0
MIN_INTERVAL = 1.0
"""Seconds between two heartbeats, whatever the host wants."""
MAX_SESSION = 64
GOODBYE_TIMEOUT = 2.0
RegistrationState = Literal["waiting", "registered", "away", "evicted"]


@dataclass(frozen=True)
class RegistrationStatus:
    """`slots` is what the host says that it serves to this client."""

    host: str
    state: RegistrationState
    error: str | None
    since: float
    slots: tuple[str, ...] = ()


@dataclass(frozen=True)
class HostLink:
    """What a registration needs: the neighbours, a way to ask one of them, what to tell, and whom."""

    neighbours: Neighbours
    send: Callable[[Neighbour, str, dict[str, Any]], Awaitable[dict[str, Any]]]
    read_facts: Callable[[], Awaitable[ClientFacts]]
    note_back: Callable[[], None]
    """The host answers again: whoever waits for it need not wait longer."""


class HostRegistration:
    """`url` is that of the host, as the manifest writes it. What the manifest says is used whatever the host answers."""

    def __init__(self, url: str, heartbeat: float, timeline: Timeline, link: HostLink) -> None:
        self._url = url
        self._heartbeat = self.interval = heartbeat
        self._timeline = timeline
        self._link = link
        self._wake = asyncio.Event()
        self._session: str | None = None
        self.status = RegistrationStatus(self._url, "waiting", None, time.time())

    def wake(self) -> None:
        """The neighbours have changed."""
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled; then it says goodbye."""
        wait = MIN_WAIT
        try:
            while True:
                try:
                    await self._register()
                    wait = MIN_WAIT
                    await self._stay()
                except FreeholdError as error:
                    self._session = None
                    await self._note(_state_of(error), error.message)
                await self._pause(wait * (0.5 + random.random() / 2))  # noqa: S311 - spreads registrations
                wait = min(MAX_WAIT, wait * 2)
        finally:
            await self._say_goodbye()

    async def _register(self) -> None:
        host = self._find_host()
        found = await self._link.send(host, "/v1/mesh/register", encode(await self._link.read_facts()))
        session, slots, wanted = found.get("session"), found.get("slots"), found.get("heartbeat")
        if not isinstance(session, str) or len(session) > MAX_SESSION or not isinstance(slots, list):
            raise FreeholdError("mesh.bad-reply", f"The reply of {self._url} is not that of a host")
        self._session = session
        # A host with a shorter interval would drop it again and again.
        shorter = min(self._heartbeat, wanted) if isinstance(wanted, int | float) else self._heartbeat
        self.interval = max(MIN_INTERVAL, shorter)
        await self._note("registered", None, tuple(str(one)[:40] for one in slots[:20]))

    async def _stay(self) -> None:
        """Sends heartbeats until the host refuses one: the place there is lost. One that is not answered is sent again.

        A place is also lost after missed heartbeats, as when this machine slept. Whether this Freehold was evicted shows
        only when it registers again.
        """
        while True:
            await self._pause(self.interval)
            facts = await self._link.read_facts()
            body = {"session": self._session, "health": facts.health, "load": facts.load}
            try:
                await self._link.send(self._find_host(), "/v1/mesh/heartbeat", body)
            except FreeholdError as error:
                if error.kind.status in (401, 403, 410):
                    self._session = None
                    await self._note("away", error.message)
                    return
                await self._note("away", error.message, self.status.slots)
            else:
                await self._note("registered", None, self.status.slots)

    def _find_host(self) -> Neighbour:
        wanted = same_address(self._url)
        for one in self._link.neighbours.list():
            if one.url is not None and same_address(one.url) == wanted:
                return one
        raise FreeholdError(
            "mesh.not-found", "It is not paired", hint="Make a code there and enter it here: freehold mesh pair CODE"
        )

    async def _pause(self, seconds: float) -> None:
        self._wake.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _say_goodbye(self) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        with suppress(FreeholdError, TimeoutError):
            async with asyncio.timeout(GOODBYE_TIMEOUT):
                await self._link.send(self._find_host(), "/v1/mesh/deregister", {"session": session})

    async def _note(self, state: RegistrationState, error: str | None, slots: tuple[str, ...] = ()) -> None:
        before = self.status
        if (before.state, before.error, before.slots) == (state, error, slots):
            return
        since = before.since if before.state == state else time.time()
        self.status = RegistrationStatus(self._url, state, error, since, slots)
        if state == "registered" and before.state != state:
            self._link.note_back()
        await asyncio.to_thread(self._store, self.status, before.state != state)

    def _store(self, status: RegistrationStatus, is_news: bool) -> None:
        with self._timeline.transaction() as tx:
            tx.execute("DELETE FROM mesh_registration WHERE host != ?", (status.host,))
            tx.execute(
                "INSERT OR REPLACE INTO mesh_registration (host, state, error, since, session, slots)"
                " VALUES (?, ?, ?, ?, NULL, ?)",
                (status.host, status.state, status.error, status.since, json.dumps(status.slots)),
            )
            if is_news:
                data = {"host": status.host, "state": status.state, "reason": status.error}
                tx.append("mesh.registration_changed", data)


def _state_of(error: FreeholdError) -> RegistrationState:
    if error.code == "mesh.not-found":
        return "waiting"
    return "evicted" if error.kind.status in (401, 403, 410) else "away"
