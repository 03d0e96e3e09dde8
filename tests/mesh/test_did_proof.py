"""Whether a DID names a key is asked of the server of that DID, and of nobody else."""

from collections.abc import Iterator

import pytest
from starlette.responses import JSONResponse, PlainTextResponse
from tests.identity.fake_atproto import OWNER, FakeAtproto, FakeAtprotoServer, run_fake_atproto

from freehold.errors import FreeholdError
from freehold.identity.atproto.oauth_client import loopback_client
from freehold.identity.atproto.resolver import PLC_URL
from freehold.mesh.did_proof import is_named_by, make_record
from freehold.mesh.nostr.keys import make_key, show_key

RECORD = "pds.honest.net/xrpc/com.atproto.repo.getRecord"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeAtprotoServer]:
    with run_fake_atproto(tmp_path_factory.mktemp("atproto")) as running:
        yield running


@pytest.fixture
def atproto(server: FakeAtprotoServer) -> FakeAtproto:
    server.atproto = FakeAtproto(loopback_client(3000))
    return server.atproto


async def asks(server: FakeAtprotoServer, public: str) -> bool:
    return await is_named_by(OWNER, public, PLC_URL, server.network)


async def test_a_key_that_the_account_names_is_proven(server: FakeAtprotoServer, atproto: FakeAtproto) -> None:
    public = make_key().public
    value = make_record(public, "2026-01-01T00:00:00Z")
    atproto.overrides[RECORD] = lambda _: JSONResponse({"uri": "at://x", "value": value})
    assert await asks(server, public)
    assert not await asks(server, make_key().public)


@pytest.mark.parametrize(
    "value", [None, [], "x", {"npub": "npub1x"}, {"$type": "other", "npub": show_key(make_key().public)}]
)
async def test_a_record_of_another_kind_proves_nothing(
    server: FakeAtprotoServer, atproto: FakeAtproto, value: object
) -> None:
    atproto.overrides[RECORD] = lambda _: JSONResponse({"value": value})
    assert not await asks(server, make_key().public)


async def test_an_account_without_such_a_record_proves_nothing(server: FakeAtprotoServer, atproto: FakeAtproto) -> None:
    atproto.overrides[RECORD] = lambda _: JSONResponse({"error": "RecordNotFound"}, status_code=400)
    assert not await asks(server, make_key().public)


async def test_a_server_that_does_not_answer_decides_nothing(server: FakeAtprotoServer, atproto: FakeAtproto) -> None:
    atproto.overrides[RECORD] = lambda _: PlainTextResponse("not json")
    with pytest.raises(FreeholdError) as error:
        await asks(server, make_key().public)
    assert error.value.code == "mesh.unreachable"
    with pytest.raises(FreeholdError):
        await is_named_by("did:web:nowhere.invalid", make_key().public, PLC_URL, server.network)
