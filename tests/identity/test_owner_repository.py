"""A record is written into the owner's account: only with the owner's consent, at the owner's server, and the tokens end."""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from tests.identity.fake_atproto import OWNER, STRANGER, FakeAtproto, FakeAtprotoServer, did_document
from tests.identity.test_flow import RunningFlow

from freehold.home import Home
from freehold.identity.atproto.oauth_client import OAuthClient, record_client
from freehold.identity.atproto.owner_repository import OwnerRepository
from freehold.identity.atproto.problems import SignInProblem

COLLECTION = "org.example.record"
SCOPE = f"atproto repo:{COLLECTION}"
PUT = "pds.honest.net/xrpc/com.atproto.repo.putRecord"


@dataclass
class Writing:
    """A flow whose client may write, and what the account got."""

    running: RunningFlow
    atproto: FakeAtproto
    written: list[dict[str, Any]] = field(default_factory=list)

    async def run(self) -> str:
        started = await self.running.flow.start()
        return await self.running.flow.finish(self.atproto.authorize(started.redirect), started.binding, self._write)

    async def _write(self, account: OwnerRepository) -> None:
        self.written.append({})
        await account.put(COLLECTION, "one", {"$type": COLLECTION})


@pytest.fixture
def writing(atproto_server: FakeAtprotoServer, home: Home, either_client: OAuthClient) -> Iterator[Writing]:
    client = record_client(either_client, COLLECTION)
    atproto = atproto_server.atproto = FakeAtproto(client)
    atproto.granted["scope"] = SCOPE
    running = RunningFlow(atproto_server, home, client)
    yield Writing(running, atproto)
    running.flow.close()


def take(atproto: FakeAtproto, seen: list[Request]) -> None:
    """The account asks for a nonce first, as real ones do, and checks the proof."""

    def answer(request: Request) -> Response:
        seen.append(request)
        if len(seen) == 1:
            return JSONResponse({"error": "use_dpop_nonce"}, 401, headers={"dpop-nonce": atproto.nonce})
        atproto._check_proof(request)
        return JSONResponse({"uri": "at://x"}, headers={"dpop-nonce": atproto.nonce})

    atproto.overrides[PUT] = answer


async def test_a_record_is_written_with_a_proof_for_that_token_and_the_tokens_end(writing: Writing) -> None:
    seen: list[Request] = []
    take(writing.atproto, seen)
    assert await writing.run() == OWNER
    assert [one.headers["authorization"] for one in seen] == ["DPoP the-access-token"] * 2
    token = base64.urlsafe_b64encode(hashlib.sha256(b"the-access-token").digest()).rstrip(b"=").decode()
    assert [one["ath"] for one in writing.atproto.proofs if "ath" in one] == [token]
    assert writing.atproto.revoked == ["the-refresh-token", "the-access-token"]


async def test_without_that_consent_nothing_is_written(writing: Writing) -> None:
    writing.atproto.granted["scope"] = "atproto"
    with pytest.raises(SignInProblem, match=r"sign-in\.token-broken"):
        await writing.run()
    assert (writing.written, writing.atproto.revoked) == ([], ["the-refresh-token", "the-access-token"])


async def test_another_account_is_not_written_to(writing: Writing) -> None:
    writing.atproto.granted["sub"] = STRANGER
    with pytest.raises(SignInProblem, match=r"sign-in\.not-owner"):
        await writing.run()
    assert writing.written == []


async def test_a_server_that_is_no_longer_the_accounts_gets_no_token(writing: Writing) -> None:
    started = await writing.running.flow.start()
    callback = writing.atproto.authorize(started.redirect)
    writing.atproto.did_document = did_document(pds="https://other.honest.net")
    with pytest.raises(SignInProblem):
        await writing.running.flow.finish(callback, started.binding, writing._write)
    assert writing.written == []


async def test_a_refusal_is_told_and_the_tokens_end(writing: Writing) -> None:
    writing.atproto.overrides[PUT] = lambda _: JSONResponse({"error": "ScopeMissingError"}, 403)
    with pytest.raises(SignInProblem, match=r"sign-in\.write-refused"):
        await writing.run()
    assert writing.atproto.revoked == ["the-refresh-token", "the-access-token"]


async def test_the_client_of_sign_ins_can_never_ask_to_write(either_client: OAuthClient) -> None:
    assert either_client.scope == "atproto"
    assert record_client(either_client, COLLECTION).client_id != either_client.client_id
    assert record_client(either_client, COLLECTION).redirect_uri != either_client.redirect_uri
    metadata = either_client.metadata()
    assert metadata is None or metadata["scope"] == "atproto"
