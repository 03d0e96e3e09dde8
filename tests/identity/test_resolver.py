import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import JSONResponse, PlainTextResponse
from tests.identity.fake_atproto import OWNER, PDS, STRANGER, FakeAtproto, FakeAtprotoServer, did_document

from freehold.errors import FreeholdError
from freehold.identity.atproto.fetcher import Fetcher
from freehold.identity.atproto.resolver import Resolver
from freehold.identity.atproto.syntax import is_did, is_handle, is_origin

HANDLE = "alice.honest.net"
TXT = f"_atproto.{HANDLE}"
WELL_KNOWN = f"{HANDLE}/.well-known/atproto-did"


@pytest.fixture
def resolver(atproto_server: FakeAtprotoServer, atproto: FakeAtproto) -> Resolver:
    return Resolver(Fetcher(atproto_server.network))


async def test_dns_resolves_a_handle(resolver: Resolver, atproto: FakeAtproto, texts: dict[str, list[str]]) -> None:
    """Checklist 1: other TXT records do not matter, and the host of the handle is not asked."""
    texts[TXT] = ["v=spf1 -all", f"did={OWNER}"]
    assert (await resolver.resolve_handle(f" @{HANDLE.upper()} ")).did == OWNER
    assert WELL_KNOWN not in atproto.requested


async def test_the_well_known_file_resolves_a_handle(resolver: Resolver, atproto: FakeAtproto) -> None:
    atproto.overrides[WELL_KNOWN] = lambda _: PlainTextResponse(f"{OWNER}\n")
    account = await resolver.resolve_handle(HANDLE)
    assert (account.did, account.pds, account.handle) == (OWNER, PDS, HANDLE)


async def test_a_service_resolves_a_handle_when_nothing_else_does(resolver: Resolver, atproto: FakeAtproto) -> None:
    atproto.overrides["other.honest.net/xrpc/com.atproto.identity.resolveHandle"] = lambda _: JSONResponse(
        {"did": OWNER}
    )
    assert (await resolver.resolve_handle(HANDLE, service="https://other.honest.net/")).did == OWNER


async def test_two_different_records_are_refused(
    resolver: Resolver, atproto: FakeAtproto, texts: dict[str, list[str]]
) -> None:
    """Checklist 1: the well-known file does not decide between them."""
    texts[TXT] = [f"did={OWNER}", f"did={STRANGER}"]
    atproto.overrides[WELL_KNOWN] = lambda _: PlainTextResponse(OWNER)
    with pytest.raises(FreeholdError, match=r"identity\.handle-ambiguous"):
        await resolver.resolve_handle(HANDLE)


async def test_a_handle_that_its_did_does_not_claim_is_refused(
    resolver: Resolver, atproto: FakeAtproto, texts: dict[str, list[str]]
) -> None:
    """Checklist 4."""
    texts[TXT] = [f"did={OWNER}"]
    atproto.did_document["alsoKnownAs"] = ["at://somebody.else.net"]
    with pytest.raises(FreeholdError, match=r"identity\.handle-not-claimed"):
        await resolver.resolve_handle(HANDLE)


@pytest.mark.parametrize(
    "claimed", [[], ["https://alice.honest.net"], ["at://", "at://alice.honest.net"], ["at://localhost"]]
)
async def test_only_the_first_at_uri_is_the_handle(
    resolver: Resolver, atproto: FakeAtproto, claimed: list[str]
) -> None:
    atproto.did_document["alsoKnownAs"] = claimed
    assert (await resolver.resolve_did(OWNER)).handle is None


async def test_a_did_web_is_fetched_from_its_host(resolver: Resolver, atproto: FakeAtproto) -> None:
    """Checklist 2."""
    did = f"did:web:{HANDLE}"
    atproto.overrides[f"{HANDLE}/.well-known/did.json"] = lambda _: JSONResponse(did_document(did))
    assert (await resolver.resolve_did(did)).pds == PDS


async def test_an_unknown_handle_is_refused(resolver: Resolver) -> None:
    with pytest.raises(FreeholdError, match=r"identity\.handle-unknown"):
        await resolver.resolve_handle(HANDLE)


@pytest.mark.parametrize("answer", ["did:key:z6M", "<html>", "did:plc:short", f"{OWNER} {STRANGER}", "x" * 5000])
async def test_a_well_known_file_without_a_did_is_ignored(
    resolver: Resolver, atproto: FakeAtproto, answer: str
) -> None:
    atproto.overrides[WELL_KNOWN] = lambda _: PlainTextResponse(answer)
    with pytest.raises(FreeholdError, match=r"identity\.handle-unknown"):
        await resolver.resolve_handle(HANDLE)


@pytest.mark.parametrize(
    "handle",
    ["", "alice", "alice.local", "a.localhost", "x.internal", "x.onion", "127.0.0.1", "a..b", "-a.com", "a.com/x", "a@b.com", "a.com:1", "ä.com", "a.1"],
)  # fmt: skip
async def test_an_invalid_handle_is_never_looked_up(resolver: Resolver, atproto: FakeAtproto, handle: str) -> None:
    with pytest.raises(FreeholdError, match=r"identity\.handle\b"):
        await resolver.resolve_handle(handle)
    assert atproto.requested == []


@pytest.mark.parametrize(
    "did",
    ["", "did:plc:", f"{OWNER}x", OWNER.upper(), f"{OWNER}\n", "did:web:localhost", "did:web:a.com:path", "did:web:a.com%3A80", "did:web:127.0.0.1", "did:web:a.com/../x", "did:key:z6M", "did:web:"],
)  # fmt: skip
def test_an_invalid_did_is_refused(did: str) -> None:
    assert not is_did(did)


def test_a_valid_did_is_accepted() -> None:
    assert is_did(OWNER)
    assert is_did("did:web:alice.example.com")


@given(st.text(alphabet="abz019.-_@:/ %\\\n[]", max_size=30))
def test_syntax_agrees_with_what_a_url_makes_of_it(text: str) -> None:
    """Text that is accepted as a handle, did:web or origin is exactly that host in a URL."""
    from urllib.parse import urlsplit

    if is_handle(text) or is_did(f"did:web:{text}"):
        assert urlsplit(f"https://{text}/x").hostname == text
    if is_origin(f"https://{text}"):
        parts = urlsplit(f"https://{text}")
        assert (parts.path, parts.query, parts.username) == ("", "", None)
