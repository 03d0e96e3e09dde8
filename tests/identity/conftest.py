from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.identity.nameserver import nameserver
from tests.identity.world import Stage, World, staged

from freehold.home import Home
from freehold.identity.atproto.client import Client, loopback_client, public_client
from freehold.identity.keys import ensure_keys, read_client_key

TEXTS: dict[str, list[str]] = {}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with nameserver(TEXTS) as dns, staged(tmp_path_factory.mktemp("stage"), dns) as running:
        yield running


@pytest.fixture
def texts() -> Iterator[dict[str, list[str]]]:
    """What DNS says, by name."""
    yield TEXTS
    TEXTS.clear()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(root=tmp_path, run=tmp_path / "run")


@pytest.fixture
def confidential(home: Home) -> Client:
    ensure_keys(home)
    return public_client("https://agent.honest.net", read_client_key(home))


@pytest.fixture(params=["confidential", "loopback"])
def either_client(request: pytest.FixtureRequest) -> Client:
    if request.param == "loopback":
        return loopback_client(3000)
    client = request.getfixturevalue("confidential")
    assert isinstance(client, Client)
    return client


@pytest.fixture
def world(stage: Stage, confidential: Client) -> World:
    stage.world = World(confidential)
    return stage.world
