from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.identity.fake_atproto import FakeAtproto, FakeAtprotoServer, run_fake_atproto
from tests.identity.nameserver import nameserver

from freehold.home import Home
from freehold.identity.atproto.oauth_client import OAuthClient, loopback_client, public_client
from freehold.identity.keys import ensure_client_key, read_client_key

TEXTS: dict[str, list[str]] = {}


@pytest.fixture(scope="module")
def atproto_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeAtprotoServer]:
    with nameserver(TEXTS) as dns, run_fake_atproto(tmp_path_factory.mktemp("atproto"), dns) as running:
        yield running


@pytest.fixture
def texts() -> Iterator[dict[str, list[str]]]:
    """The TXT records in DNS, by name."""
    yield TEXTS
    TEXTS.clear()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(root=tmp_path, run=tmp_path / "run")


@pytest.fixture
def confidential(home: Home) -> OAuthClient:
    ensure_client_key(home)
    return public_client("https://agent.honest.net", read_client_key(home))


@pytest.fixture(params=["confidential", "loopback"])
def either_client(request: pytest.FixtureRequest) -> OAuthClient:
    if request.param == "loopback":
        return loopback_client(3000)
    client = request.getfixturevalue("confidential")
    assert isinstance(client, OAuthClient)
    return client


@pytest.fixture
def atproto(atproto_server: FakeAtprotoServer, confidential: OAuthClient) -> FakeAtproto:
    atproto_server.atproto = FakeAtproto(confidential)
    return atproto_server.atproto
