"""What the tests of slots share: every implementation of a slot, and the servers behind them."""

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest
from tests.support.nats import TOKEN, NatsServer, running_nats
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.scripted_runs import ScriptedRuns, running_neighbour
from tests.support.solid import SolidPod, running_solid

from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.observe.secrets import Secret
from freehold.slots import Slot, SlotName
from freehold.slots.host import SlotPlace, make_slot
from freehold.timeline import Timeline

Mode = Literal["local", "external", "off"]


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
def neighbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of another Freehold, and a token for it."""
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
            address, _ = self.request.getfixturevalue("neighbour")
            return {"url": address, "token": "env:NEIGHBOUR_TOKEN"}
        return self.settings

    def place_of(self, name: SlotName) -> SlotPlace:
        """With the secrets that the settings of a slot name."""
        environ = {"NATS_TOKEN": TOKEN}
        if name == "pods":
            pod: SolidPod = self.request.getfixturevalue("solid")
            environ["SOLID_SECRET"] = pod.client_secret
        if name == "orchestrator":
            environ["NEIGHBOUR_TOKEN"] = self.request.getfixturevalue("neighbour")[1]
        return replace(self.place, environ=environ)

    def make(self, name: SlotName, mode: Mode) -> Slot:
        if mode != "external":
            return make_slot(name, SlotSection(mode=mode), self.place)
        return make_slot(name, SlotSection(mode=mode, settings=self.settings_of(name)), self.place_of(name))

    @asynccontextmanager
    async def open(self, name: SlotName, mode: Mode) -> AsyncIterator[Slot]:
        slot = self.make(name, mode)
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
