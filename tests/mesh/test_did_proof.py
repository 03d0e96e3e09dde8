"""Whether a DID names a key is asked of the server of that DID, and of nobody else."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from tests.identity.fake_atproto import OWNER, FakeAtproto, FakeAtprotoServer, run_fake_atproto
from tests.mesh.freeholds import running_mesh
from tests.support.condition import until

from freehold.errors import FreeholdError
from freehold.identity.atproto.oauth_client import loopback_client
from freehold.identity.atproto.resolver import PLC_URL
from freehold.mesh import did_proof
from freehold.mesh.did_proof import is_named_by, make_record
from freehold.mesh.identity import sign_statement
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


@pytest.mark.parametrize("status", [302, 401, 429, 500, 502, 503])
async def test_a_server_that_has_an_error_decides_nothing(
    server: FakeAtprotoServer, atproto: FakeAtproto, status: int
) -> None:
    """It must not look as if the account named another key."""
    atproto.overrides[RECORD] = lambda _: JSONResponse({"error": "InternalServerError"}, status_code=status)
    with pytest.raises(FreeholdError) as error:
        await asks(server, make_key().public)
    assert error.value.code == "mesh.unreachable"


async def test_what_was_found_stays_while_the_account_cannot_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a true neighbour loses its proof by that, nor one that lies its refusal."""
    answers: asyncio.Queue[bool | None] = asyncio.Queue()
    asked: list[str] = []

    async def answer(did: str, *_: object) -> bool:
        asked.append(did)
        found = await answers.get()
        if found is None:
            raise FreeholdError("mesh.unreachable", "It is away")
        return found

    monkeypatch.setattr(did_proof, "is_named_by", answer)
    async with running_mesh(tmp_path) as home:
        neighbours, proofs = home.mesh.neighbours, home.mesh.proofs
        neighbours.add(make_key().public, "friend", url=None, did=OWNER, grants=(), given=(), who="test")

        def has_proof(state: str) -> bool:
            return neighbours.get("friend").proof == state

        def was_asked(times: int) -> bool:
            return len(asked) == times

        proofs.wake()
        for number, (said, state) in enumerate(((True, "proven"), (False, "refuted"))):
            answers.put_nowait(said)
            await until(partial(has_proof, state))
            answers.put_nowait(None)
            for calls in (2, 3):
                proofs.wake()
                await until(partial(was_asked, calls + 2 * number))
            # It is asked once more, so it is through with the answer before.
            assert neighbours.get("friend").proof == state


async def test_a_server_that_does_not_answer_decides_nothing(server: FakeAtprotoServer, atproto: FakeAtproto) -> None:
    atproto.overrides[RECORD] = lambda _: PlainTextResponse("not json")
    with pytest.raises(FreeholdError) as error:
        await asks(server, make_key().public)
    assert error.value.code == "mesh.unreachable"
    with pytest.raises(FreeholdError):
        await is_named_by("did:web:nowhere.invalid", make_key().public, PLC_URL, server.network)


async def test_a_neighbour_that_claims_the_did_of_another_is_refuted(
    tmp_path: Path, server: FakeAtprotoServer, atproto: FakeAtproto
) -> None:
    """The DID can be resolved, and its account names another key."""
    owner, liar = make_key(), make_key()

    def answer(request: Request) -> JSONResponse:
        if request.query_params["rkey"] != show_key(owner.public):
            return JSONResponse({"error": "RecordNotFound"}, status_code=400)
        return JSONResponse({"uri": "at://x", "value": make_record(owner.public, "2026-01-01T00:00:00Z")})

    atproto.overrides[RECORD] = answer
    async with running_mesh(tmp_path) as home:
        home.mesh.proofs._network, home.mesh.proofs._plc_url = server.network, PLC_URL
        for key, name in ((owner, "owner"), (liar, "liar")):
            code, _ = await home.mesh.pairings.create_code((), name)
            statement = sign_statement(key, name, OWNER, code.secret).as_json()
            await home.mesh.pairings.accept(key.public, code.secret, statement, None, [], "127.0.0.1")
        neighbours = home.mesh.neighbours
        await until(lambda: neighbours.get("owner").proof == "proven")
        await until(lambda: neighbours.get("liar").proof == "refuted")
