"""What the tests of slots share: every implementation of a slot, and the servers behind them."""

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from tests.support.nats import TOKEN, NatsServer, running_nats
from tests.support.postgres import PostgresServer, running_postgres

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
        return self.settings

    def make(self, name: SlotName, mode: Mode) -> Slot:
        section = SlotSection(mode=mode, settings=self.settings_of(name) if mode == "external" else {})
        return make_slot(name, section, self.place)

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
        yield SlotBench(place, request, f"t{secrets.token_hex(6)}")
