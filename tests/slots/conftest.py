"""What the tests of slots share: every implementation of a slot, and the servers behind them."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest
from tests.support.nats import TOKEN, NatsServer, running_nats
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.scripted_runs import Neighbour, ScriptedRuns, running_neighbour
from tests.support.solid import SolidPod, running_solid

from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.observe.secrets import Secret
from freehold.slots import Slot, SlotName
from freehold.slots.host import SlotPlace, make_slot
from freehold.timeline import Timeline

Mode = Literal["local", "external", "off"]
Where = Mode | Literal["neighbour"]
"""`neighbour` is external as well: another Freehold, for a slot that has a further external beside it."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def nats() -> Iterator[NatsServer]:
    with running_nats() as server:
        yield server


@pytest.fixture(scope="session")
def solid() -> Iterator[SolidPod]:
    """It starts slowly, so that one serves all modules."""
    with running_solid() as server:
        yield server


@pytest.fixture(scope="module")
def neighbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbour]:
    """Another Freehold, for all tests of a module."""
    with running_neighbour(tmp_path_factory.mktemp("neighbour")) as found:
        yield found


@dataclass(frozen=True)
class SlotBench:
    """A folder in which slots are opened, and the servers behind external ones, each started when it is needed."""

    place: SlotPlace
    request: pytest.FixtureRequest
    unique: str

    @property
    def settings(self) -> dict[str, str]:
        """Of a slot in the database."""
        server: PostgresServer = self.request.getfixturevalue("postgres")
        return {"url": server.url, "schema": self.unique}

    def settings_of(self, name: SlotName) -> dict[str, str]:
        if name == "events":
            server: NatsServer = self.request.getfixturevalue("nats")
            return {
                "url": server.url,
                "token": "env:NATS_TOKEN",
                "stream": self.unique,
                "prefix": self.unique,
                "kinds": "beads.*, test.*",
            }
        if name == "pods":
            pod: SolidPod = self.request.getfixturevalue("solid")
            return pod.settings(self.unique)
        if name == "orchestrator":
            return self.neighbour_settings
        return self.settings

    @property
    def neighbour(self) -> Neighbour:
        found: Neighbour = self.request.getfixturevalue("neighbour")
        return found

    @property
    def neighbour_settings(self) -> dict[str, str]:
        return {"url": self.neighbour.url, "token": "env:NEIGHBOUR_TOKEN"}

    def place_of(self, name: SlotName, mode: Where = "external") -> SlotPlace:
        """With the secrets that the settings of a slot name."""
        environ = {"NATS_TOKEN": TOKEN}
        if name == "pods":
            pod: SolidPod = self.request.getfixturevalue("solid")
            environ["SOLID_SECRET"] = pod.client_secret
        if name == "orchestrator" or mode == "neighbour":
            environ["NEIGHBOUR_TOKEN"] = self.neighbour.token
        return replace(self.place, environ=environ)

    def make(self, name: SlotName, mode: Where) -> Slot:
        if mode == "local" or mode == "off":
            return make_slot(name, SlotSection(mode=mode), self.place)
        settings = self.neighbour_settings if mode == "neighbour" else self.settings_of(name)
        return make_slot(name, SlotSection(mode="external", settings=settings), self.place_of(name, mode))

    @asynccontextmanager
    async def open(self, name: SlotName, mode: Where) -> AsyncIterator[Slot]:
        slot = self.make(name, mode)
        if mode == "neighbour":
            await asyncio.to_thread(self.neighbour.forget_beads)
        await slot.connect()
        try:
            yield slot
        finally:
            await slot.close()


def no_secret(name: str) -> Secret:
    raise AssertionError(f"the secret {name} was asked for")


@pytest.fixture
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SlotBench]:
    with Timeline(tmp_path / "timeline.db") as timeline:
        place = SlotPlace(Home(tmp_path, tmp_path / "run"), timeline, no_secret, {"NATS_TOKEN": TOKEN})
        place.engine.engine = ScriptedRuns()
        yield SlotBench(place, request, f"t{secrets.token_hex(6)}")
