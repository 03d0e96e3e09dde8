"""Sign-in at an honest server, which refuses a client that omits anything required."""

import logging
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from starlette.responses import JSONResponse
from tests.identity.fake_atproto import ISSUER, OWNER, STRANGER, FakeAtproto, FakeAtprotoServer, did_document

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.identity.atproto.fetcher import NetworkOverrides
from freehold.identity.atproto.flow import OAuthFlow
from freehold.identity.atproto.oauth_client import OAuthClient
from freehold.identity.atproto.problems import SignInProblem


class RunningFlow:
    """A flow with a clock, and the timeline events that it wrote."""

    def __init__(self, atproto_server: FakeAtprotoServer, home: Home, client: OAuthClient) -> None:
        self.events: list[tuple[str, Mapping[str, str]]] = []
        self.now = time.time()
        self.flow = OAuthFlow(
            owner=OWNER,
            client=client,
            database=home.identity,
            on_event=lambda kind, data: self.events.append((kind, data)),
            network=atproto_server.network,
            clock=lambda: self.now,
        )


@pytest.fixture
def running(atproto_server: FakeAtprotoServer, home: Home, atproto: FakeAtproto) -> Iterator[RunningFlow]:
    running = RunningFlow(atproto_server, home, atproto.client)
    yield running
    running.flow.close()


async def test_the_owner_signs_in_at_an_honest_server(
    atproto_server: FakeAtprotoServer, home: Home, either_client: OAuthClient
) -> None:
    """Checklist 11 to 21: the fake server checks each proof, assertion, challenge and nonce."""
    atproto = atproto_server.atproto = FakeAtproto(either_client)
    running = RunningFlow(atproto_server, home, either_client)
    started = await running.flow.start()
    address, query = started.redirect.split("?")
    assert address == f"{ISSUER}/authorize"
    assert sorted(part.split("=")[0] for part in query.split("&")) == ["client_id", "request_uri"]
    assert await running.flow.finish(atproto.authorize(started.redirect), started.binding) == OWNER
    assert atproto.revoked == ["the-refresh-token", "the-access-token"]
    assert running.events == []


async def test_nothing_is_used_twice(running: RunningFlow, atproto: FakeAtproto) -> None:
    """Checklist 6, 12, 13, 14: two sign-ins share no state, challenge, key or cookie, and each resolves the DID."""
    first, second = await running.flow.start(), await running.flow.start()
    requests = list(atproto.requests.values())
    for name in ("state", "code_challenge", "thumbprint"):
        assert len({request[name] for request in requests}) == 2
    assert first.binding != second.binding
    assert sum(asked.startswith("plc.directory/") for asked in atproto.requested) == 2


async def test_a_second_callback_is_refused(running: RunningFlow, atproto: FakeAtproto) -> None:
    """Checklist 13: the state works once, also with a new code."""
    started = await running.flow.start()
    await running.flow.finish(atproto.authorize(started.redirect), started.binding)
    with pytest.raises(SignInProblem, match=r"sign-in\.expired"):
        await running.flow.finish(atproto.authorize(started.redirect), started.binding)


async def test_a_late_callback_is_refused(running: RunningFlow, atproto: FakeAtproto) -> None:
    started = await running.flow.start()
    running.now += 601
    with pytest.raises(SignInProblem, match=r"sign-in\.expired"):
        await running.flow.finish(atproto.authorize(started.redirect), started.binding)


@pytest.mark.parametrize("wrong", [7200, -7200])
async def test_a_wrong_clock_is_reported_with_the_difference(
    running: RunningFlow, atproto: FakeAtproto, wrong: int
) -> None:
    running.now += wrong
    with pytest.raises(SignInProblem, match=r"differ by 7[12]\d\d seconds"):
        await running.flow.start()


async def test_a_pds_that_is_down_is_reported(
    atproto_server: FakeAtprotoServer, home: Home, atproto: FakeAtproto
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        atproto.did_document = did_document(pds="https://down.honest.net")
        network = NetworkOverrides(
            routes={**atproto_server.network.routes, "down.honest.net": unused.getsockname()},
            authority=atproto_server.network.authority,
        )
        running = RunningFlow(replace(atproto_server, network=network), home, atproto.client)
        with pytest.raises(
            SignInProblem, match=r"down\.honest\.net, which hosts the owner's account, cannot be reached"
        ):
            await running.flow.start()
        running.flow.close()


@pytest.mark.parametrize("cookie", [None, "", "of-another-browser"])
async def test_a_callback_in_another_browser_is_refused(
    running: RunningFlow, atproto: FakeAtproto, cookie: str | None
) -> None:
    """Checklist 24: the attempt ends, so the first browser cannot use it either."""
    started = await running.flow.start()
    callback = atproto.authorize(started.redirect)
    with pytest.raises(SignInProblem, match=r"sign-in\.other-browser"):
        await running.flow.finish(callback, cookie)
    with pytest.raises(SignInProblem, match=r"sign-in\.expired"):
        await running.flow.finish(callback, started.binding)


async def test_a_stranger_is_refused_and_the_timeline_records_it(
    running: RunningFlow, atproto: FakeAtproto, caplog: pytest.LogCaptureFixture
) -> None:
    atproto.granted["sub"] = STRANGER
    started = await running.flow.start()
    with pytest.raises(SignInProblem) as caught:
        await running.flow.finish(atproto.authorize(started.redirect), started.binding)
    assert (caught.value.code, caught.value.kind.status) == ("sign-in.not-owner", 403)
    assert OWNER not in str(caught.value)
    assert running.events == [
        (
            "identity.sign_in_refused",
            {"code": "sign-in.not-owner", "reason": f"checklist 19: {STRANGER} signed in and is not the owner"},
        )
    ]
    assert "is not the owner" in caplog.text
    assert atproto.revoked == ["the-refresh-token", "the-access-token"]


async def test_an_invalid_callback_writes_nothing_to_the_timeline(running: RunningFlow) -> None:
    """Anybody can open the callback; only an attempt that started here may write."""
    for query in ([], [("state", "x")], [("state", "x"), ("state", "y")], [("state", "x" * 5000)], [("code", "x")]):
        with pytest.raises(SignInProblem):
            await running.flow.finish(query, "cookie")
    assert running.events == []


async def test_a_server_without_revocation_does_not_stop_a_sign_in(
    running: RunningFlow, atproto: FakeAtproto, caplog: pytest.LogCaptureFixture
) -> None:
    del atproto.metadata["revocation_endpoint"]
    started = await running.flow.start()
    assert await running.flow.finish(atproto.authorize(started.redirect), started.binding) == OWNER
    assert "could not be revoked" in caplog.text


async def test_the_account_may_move_between_sign_ins(running: RunningFlow, atproto: FakeAtproto) -> None:
    """Nothing of the last sign-in is cached, so a DID that moved can sign in."""
    started = await running.flow.start()
    await running.flow.finish(atproto.authorize(started.redirect), started.binding)
    atproto.did_document = did_document(pds="https://other.honest.net")
    atproto.metadata["protected_resources"] = ["https://other.honest.net"]
    atproto.overrides["other.honest.net/.well-known/oauth-protected-resource"] = lambda _: JSONResponse(
        {"resource": "https://other.honest.net", "authorization_servers": [ISSUER]}
    )
    started = await running.flow.start()
    assert await running.flow.finish(atproto.authorize(started.redirect), started.binding) == OWNER


async def test_the_log_of_a_sign_in_has_no_secret(
    running: RunningFlow, atproto: FakeAtproto, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    started = await running.flow.start()
    callback = dict(atproto.authorize(started.redirect))
    await running.flow.finish(callback.items(), started.binding)
    for secret in (
        started.binding,
        callback["state"],
        callback["code"],
        "the-access-token",
        "the-refresh-token",
        "eyJ",
    ):
        assert secret not in caplog.text


@pytest.mark.parametrize(
    "owner", ["did:key:z6Mkf5rGMoatrSj1f", "alice.bsky.social", "did:plc:short", "did:web:a.b/../c", ""]
)
def test_an_owner_that_is_not_a_did_is_refused(home: Home, confidential: OAuthClient, owner: str) -> None:
    """Checklist 2."""
    with pytest.raises(FreeholdError, match=r"identity\.owner"):
        OAuthFlow(owner=owner, client=confidential, database=home.identity, on_event=lambda kind, data: None)
