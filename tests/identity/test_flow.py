"""Sign-in against an honest server that refuses any client which leaves something out."""

import logging
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from starlette.responses import JSONResponse
from tests.identity.world import ISSUER, OWNER, STRANGER, Stage, World, did_document

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.identity.atproto.client import Client
from freehold.identity.atproto.fetch import Network
from freehold.identity.atproto.flow import SignIn
from freehold.identity.atproto.problems import SignInProblem


class Visit:
    """One sign-in service and what it told the timeline."""

    def __init__(self, stage: Stage, home: Home, client: Client) -> None:
        self.events: list[tuple[str, Mapping[str, str]]] = []
        self.now = time.time()
        self.sign_in = SignIn(
            owner=OWNER,
            client=client,
            database=home.identity,
            on_event=lambda kind, data: self.events.append((kind, data)),
            network=stage.network,
            clock=lambda: self.now,
        )


@pytest.fixture
def visit(stage: Stage, home: Home, world: World) -> Iterator[Visit]:
    visit = Visit(stage, home, world.client)
    yield visit
    visit.sign_in.close()


async def test_an_honest_server_lets_the_owner_in(stage: Stage, home: Home, either_client: Client) -> None:
    """Checklist 11 to 21: the server of these tests checks every proof, assertion, challenge and nonce itself."""
    world = stage.world = World(either_client)
    visit = Visit(stage, home, either_client)
    started = await visit.sign_in.start()
    address, query = started.redirect.split("?")
    assert address == f"{ISSUER}/authorize"
    assert sorted(part.split("=")[0] for part in query.split("&")) == ["client_id", "request_uri"]
    assert await visit.sign_in.finish(world.authorize(started.redirect), started.binding) == OWNER
    assert world.revoked == ["the-refresh-token", "the-access-token"]
    assert visit.events == []


async def test_nothing_is_used_twice(visit: Visit, world: World) -> None:
    """Checklist 6, 12, 13, 14: two sign-ins share no state, challenge, key or cookie, and each asks the directory."""
    first, second = await visit.sign_in.start(), await visit.sign_in.start()
    requests = list(world.requests.values())
    for name in ("state", "code_challenge", "thumbprint"):
        assert len({request[name] for request in requests}) == 2
    assert first.binding != second.binding
    assert sum(asked.startswith("plc.directory/") for asked in world.asked) == 2


async def test_a_second_answer_is_refused(visit: Visit, world: World) -> None:
    """Checklist 13: the state works once, also for a fresh code."""
    started = await visit.sign_in.start()
    await visit.sign_in.finish(world.authorize(started.redirect), started.binding)
    with pytest.raises(SignInProblem, match=r"sign-in\.expired"):
        await visit.sign_in.finish(world.authorize(started.redirect), started.binding)


async def test_a_late_answer_is_refused(visit: Visit, world: World) -> None:
    started = await visit.sign_in.start()
    visit.now += 601
    with pytest.raises(SignInProblem, match=r"sign-in\.expired"):
        await visit.sign_in.finish(world.authorize(started.redirect), started.binding)


@pytest.mark.parametrize("wrong", [7200, -7200])
async def test_a_wrong_clock_is_named_with_the_difference(visit: Visit, world: World, wrong: int) -> None:
    visit.now += wrong
    with pytest.raises(SignInProblem, match=r"differ by 7[12]\d\d seconds"):
        await visit.sign_in.start()


async def test_a_pds_that_is_down_is_named(stage: Stage, home: Home, world: World) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        world.did_document = did_document(pds="https://down.honest.net")
        network = Network(
            routes={**stage.network.routes, "down.honest.net": unused.getsockname()}, authority=stage.network.authority
        )
        visit = Visit(replace(stage, network=network), home, world.client)
        with pytest.raises(
            SignInProblem, match=r"down\.honest\.net, where the owner's account lives, cannot be reached"
        ):
            await visit.sign_in.start()
        visit.sign_in.close()


@pytest.mark.parametrize("cookie", [None, "", "of-another-browser"])
async def test_an_answer_in_another_browser_is_refused(visit: Visit, world: World, cookie: str | None) -> None:
    """Checklist 24: and the sign-in is over, so the right browser cannot be led on with it either."""
    started = await visit.sign_in.start()
    answer = world.authorize(started.redirect)
    with pytest.raises(SignInProblem, match=r"sign-in\.other-browser"):
        await visit.sign_in.finish(answer, cookie)
    with pytest.raises(SignInProblem, match=r"sign-in\.expired"):
        await visit.sign_in.finish(answer, started.binding)


async def test_a_stranger_is_refused_and_the_owner_told(
    visit: Visit, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.granted["sub"] = STRANGER
    started = await visit.sign_in.start()
    with pytest.raises(SignInProblem) as caught:
        await visit.sign_in.finish(world.authorize(started.redirect), started.binding)
    assert (caught.value.code, caught.value.status) == ("sign-in.not-owner", 403)
    assert OWNER not in str(caught.value)
    assert visit.events == [
        (
            "identity.sign_in_refused",
            {"code": "sign-in.not-owner", "reason": f"checklist 19: {STRANGER} signed in and is not the owner"},
        )
    ]
    assert "is not the owner" in caplog.text
    assert world.revoked == ["the-refresh-token", "the-access-token"]


async def test_garbage_at_the_callback_never_reaches_the_timeline(visit: Visit) -> None:
    """Anybody can open the callback; only a sign-in that was begun here may write."""
    for query in ([], [("state", "x")], [("state", "x"), ("state", "y")], [("state", "x" * 5000)], [("code", "x")]):
        with pytest.raises(SignInProblem):
            await visit.sign_in.finish(query, "cookie")
    assert visit.events == []


async def test_a_sign_in_survives_a_server_that_cannot_revoke(
    visit: Visit, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    del world.metadata["revocation_endpoint"]
    started = await visit.sign_in.start()
    assert await visit.sign_in.finish(world.authorize(started.redirect), started.binding) == OWNER
    assert "could not be revoked" in caplog.text


async def test_the_account_may_move_between_sign_ins(visit: Visit, world: World) -> None:
    """A DID that moved is not a problem at the next sign-in: nothing of the last one is remembered."""
    started = await visit.sign_in.start()
    await visit.sign_in.finish(world.authorize(started.redirect), started.binding)
    world.did_document = did_document(pds="https://other.honest.net")
    world.metadata["protected_resources"] = ["https://other.honest.net"]
    world.overrides["other.honest.net/.well-known/oauth-protected-resource"] = lambda _: JSONResponse(
        {"resource": "https://other.honest.net", "authorization_servers": [ISSUER]}
    )
    started = await visit.sign_in.start()
    assert await visit.sign_in.finish(world.authorize(started.redirect), started.binding) == OWNER


async def test_the_log_of_a_whole_sign_in_holds_no_secret(
    visit: Visit, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    started = await visit.sign_in.start()
    answer = dict(world.authorize(started.redirect))
    await visit.sign_in.finish(answer.items(), started.binding)
    for secret in (started.binding, answer["state"], answer["code"], "the-access-token", "the-refresh-token", "eyJ"):
        assert secret not in caplog.text


@pytest.mark.parametrize(
    "owner", ["did:key:z6Mkf5rGMoatrSj1f", "alice.bsky.social", "did:plc:short", "did:web:a.b/../c", ""]
)
def test_an_owner_that_is_no_did_is_refused(home: Home, confidential: Client, owner: str) -> None:
    """Checklist 2."""
    with pytest.raises(FreeholdError, match=r"identity\.owner"):
        SignIn(owner=owner, client=confidential, database=home.identity, on_event=lambda kind, data: None)
