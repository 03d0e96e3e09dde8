"""Every item of the checklist, broken in turn: each is refused, and the log says which and why."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from tests.identity.world import ISSUER, OWNER, PDS, STRANGER, Stage, World, did_document, server_metadata

from freehold.home import Home
from freehold.identity.atproto.flow import SignIn
from freehold.identity.atproto.problems import SignInProblem

Crime = Callable[[World], object]
Forgery = Callable[[dict[str, str]], object]

RESOURCE_AT = "pds.honest.net/.well-known/oauth-protected-resource"
METADATA_AT = "auth.honest.net/.well-known/oauth-authorization-server"
PLC_AT = f"plc.directory/{OWNER}"


def answers(at: str, response: Callable[[], Response]) -> Crime:
    return lambda world: world.overrides.update({at: lambda _: response()})


def document(pds: Any = PDS, **changes: Any) -> Crime:
    return lambda world: setattr(world, "did_document", {**did_document(pds=pds), **changes})


def service(**changes: Any) -> Crime:
    entry = {**did_document()["service"][0], **changes}
    return document(service=[entry])


def resource(**changes: Any) -> Crime:
    return lambda world: world.resource.update(changes)


def metadata(**changes: Any) -> Crime:
    return lambda world: world.metadata.update(changes)


def without(name: str) -> Crime:
    return lambda world: world.metadata.pop(name)


def lacking(name: str, value: str) -> Crime:
    return lambda world: world.metadata[name].remove(value)


def ok(content: Any, status: int = 200) -> Callable[[], Response]:
    return lambda: JSONResponse(content, status)


def to_elsewhere() -> Response:
    return RedirectResponse("https://other.honest.net/", 302)


BEFORE: list[tuple[str, Crime, str, str]] = [
    # name, crime, code, words in the log
    ("3 another's document", document(id=STRANGER), "directory-broken", "checklist 3: the document of"),
    ("3 document without id", document(id=None), "directory-broken", "checklist 3: the document"),
    ("3 document is a list", answers(PLC_AT, ok([1])), "directory-broken", "checklist 3: the answer is not a JSON object"),
    ("3 document is text", answers(PLC_AT, lambda: PlainTextResponse("{}")), "directory-broken", "not JSON"),
    ("3 document is deep", answers(PLC_AT, lambda: Response("[" * 100_000, media_type="application/json")), "directory-broken", "checklist 3: the answer is not JSON"),
    ("31 directory redirects", answers(PLC_AT, to_elsewhere), "directory-broken", "checklist 31:"),
    ("31 document is huge", answers(PLC_AT, ok({"id": "x" * 300_000})), "directory-broken", "checklist 31: plc.directory sent more than"),
    ("2 DID unknown", answers(PLC_AT, ok({}, 404)), "did-unknown", "answered 404"),
    ("2 DID tombstoned", answers(PLC_AT, ok({}, 410)), "did-unknown", "answered 410"),
    ("directory down", answers(PLC_AT, ok({}, 503)), "directory-unreachable", "answered 503"),
    ("5 no PDS", document(service=[]), "directory-broken", "checklist 5:"),
    ("5 other service", service(id="#bsky_notif"), "directory-broken", "checklist 5:"),
    ("5 service of another", service(id=f"{STRANGER}#atproto_pds"), "directory-broken", "checklist 5:"),
    ("5 other type", service(type="LinkedDomains"), "directory-broken", "checklist 5:"),
    ("5 PDS by http", document("http://pds.honest.net"), "directory-broken", "checklist 5:"),
    ("5 PDS with a path", document(f"{PDS}/x"), "directory-broken", "checklist 5:"),
    ("5 PDS with a query", document(f"{PDS}?x"), "directory-broken", "checklist 5:"),
    ("5 PDS with a user", document("https://root@pds.honest.net"), "directory-broken", "checklist 5:"),
    ("5 PDS is no text", document({"uri": PDS}), "directory-broken", "checklist 5:"),
    ("5, 31 PDS by number", document("https://127.0.0.1"), "directory-broken", "checklist 5:"),
    ("5, 31 PDS by bare number", document("https://2130706433"), "directory-broken", "checklist 5:"),
    ("5, 31 PDS by IPv6", document("https://[::1]"), "directory-broken", "checklist 5:"),
    ("5, 31 PDS is localhost", document("https://localhost"), "directory-broken", "checklist 5:"),
    ("7 not found", answers(RESOURCE_AT, ok({}, 404)), "pds-broken", "checklist 7:"),
    ("7 created", answers(RESOURCE_AT, ok({}, 201)), "pds-broken", "checklist 7:"),
    ("7 redirect", answers(RESOURCE_AT, to_elsewhere), "pds-broken", "checklist 31:"),
    ("7 PDS down", answers(RESOURCE_AT, ok({}, 502)), "pds-unreachable", "answered 502"),
    ("7 text", answers(RESOURCE_AT, lambda: PlainTextResponse("{}")), "pds-broken", "checklist 7:"),
    ("7 no server", resource(authorization_servers=[]), "pds-broken", "checklist 7: 0 authorization servers"),
    ("7 two servers", resource(authorization_servers=[ISSUER, PDS]), "pds-broken", "checklist 7: 2 authorization servers"),
    ("7 server with a path", resource(authorization_servers=[f"{ISSUER}/"]), "pds-broken", "checklist 7:"),
    ("7 server by http", resource(authorization_servers=["http://auth.honest.net"]), "pds-broken", "checklist 7:"),
    ("7 server with default port", resource(authorization_servers=[f"{ISSUER}:443"]), "pds-broken", "checklist 7:"),
    ("7 server is a number", resource(authorization_servers=[1]), "pds-broken", "checklist 7:"),
    ("7 another's resource", resource(resource="https://other.honest.net"), "pds-broken", "checklist 7:"),
    ("8 another issuer", metadata(issuer=PDS), "server-broken", "checklist 8:"),
    ("8 issuer with a slash", metadata(issuer=f"{ISSUER}/"), "server-broken", "checklist 8:"),
    ("8 not found", answers(METADATA_AT, ok({}, 404)), "server-broken", "checklist 8:"),
    ("8 accepted", answers(METADATA_AT, ok(server_metadata(), 202)), "server-broken", "checklist 8:"),
    ("8 redirect", answers(METADATA_AT, to_elsewhere), "server-broken", "checklist 31:"),
    ("8 server down", answers(METADATA_AT, ok({}, 500)), "server-unreachable", "answered 500"),
    ("9 alg none", metadata(token_endpoint_auth_signing_alg_values_supported=["ES256", "none"]), "server-broken", "holds none"),
    ("9 DPoP alg none", metadata(dpop_signing_alg_values_supported=["ES256", "none"]), "server-broken", "holds none"),
    ("9 another's PDS", metadata(protected_resources=["https://other.honest.net"]), "server-broken", "checklist 9:"),
    *(
        (f"9 {name} lacks {value}", lacking(name, value), "server-broken", f"checklist 9: {name} lacks {value}")
        for name, value in [
            ("response_types_supported", "code"),
            ("grant_types_supported", "authorization_code"),
            ("grant_types_supported", "refresh_token"),
            ("code_challenge_methods_supported", "S256"),
            ("token_endpoint_auth_methods_supported", "none"),
            ("token_endpoint_auth_methods_supported", "private_key_jwt"),
            ("token_endpoint_auth_signing_alg_values_supported", "ES256"),
            ("scopes_supported", "atproto"),
            ("dpop_signing_alg_values_supported", "ES256"),
        ]
    ),
    *(
        (f"9 {name} is false", metadata(**{name: False}), "server-broken", f"checklist 9: {name} is false")
        for name in (
            "authorization_response_iss_parameter_supported",
            "require_pushed_authorization_requests",
            "client_id_metadata_document_supported",
        )
    ),
    *(
        (f"9 {name} is absent", without(name), "server-broken", "checklist 9:")
        for name in server_metadata()
        if name not in ("revocation_endpoint", "protected_resources", "issuer")
    ),
    *(
        (f"10 {name} at {url}", metadata(**{name: url}), "server-broken", f"checklist 10: {name}")
        for name in ("authorization_endpoint", "token_endpoint", "pushed_authorization_request_endpoint", "revocation_endpoint")
        for url in ("http://auth.honest.net/x", f"{ISSUER}/x?a=b", f"{ISSUER}/x#y", "https://root@auth.honest.net/x")
    ),
    ("10 script", metadata(authorization_endpoint="javascript:alert(1)"), "server-broken", "checklist 10:"),
    ("10, 31 by number", metadata(token_endpoint="https://169.254.169.254/x"), "server-broken", "checklist 10:"),
    ("11 no request_uri", lambda world: world.pushed.update(request_uri=None), "server-broken", "checklist 11:"),
    ("11 request_uri with blanks", lambda world: world.pushed.update(request_uri="a b"), "server-broken", "checklist 11:"),
    ("11 no life", lambda world: world.pushed.update(expires_in=0), "server-broken", "checklist 11:"),
    ("11 PAR redirects", answers("auth.honest.net/par", to_elsewhere), "server-broken", "checklist 31:"),
    ("11 PAR down", answers("auth.honest.net/par", ok({}, 503)), "server-unreachable", "answered 503"),
    ("11 PAR refuses", answers("auth.honest.net/par", ok({"error": "invalid_client"}, 400)), "request-refused", "invalid_client"),
    ("15 PAR without nonce", lambda world: world.without_nonce.add("auth.honest.net/par"), "request-refused", "use_dpop_nonce"),
    ("15 endless nonces", lambda world: setattr(world, "endless_nonce", True), "request-refused", "use_dpop_nonce"),
    ("15 PAR accepts without nonce", answers("auth.honest.net/par", ok({"request_uri": "urn:x", "expires_in": 60}, 201)), "server-broken", "checklist 15:"),
]  # fmt: skip


@pytest.fixture
def sign_in(stage: Stage, home: Home, world: World) -> Iterator[SignIn]:
    service = SignIn(
        owner=OWNER,
        client=world.client,
        database=home.identity,
        on_event=lambda kind, data: None,
        network=stage.network,
    )
    yield service
    service.close()


@pytest.mark.parametrize(("crime", "code", "words"), [case[1:] for case in BEFORE], ids=[case[0] for case in BEFORE])
async def test_a_sign_in_does_not_begin(
    sign_in: SignIn, world: World, caplog: pytest.LogCaptureFixture, crime: Crime, code: str, words: str
) -> None:
    crime(world)
    with pytest.raises(SignInProblem) as caught:
        await sign_in.start()
    assert caught.value.code == f"sign-in.{code}", caught.value.reason
    assert words in caplog.text
    assert caught.value.hint


def granted(**changes: Any) -> Crime:
    return lambda world: world.granted.update(changes)


def moved(world: World) -> None:
    world.did_document = did_document(pds="https://other.honest.net")
    world.overrides["other.honest.net/.well-known/oauth-protected-resource"] = lambda _: JSONResponse(
        {"resource": "https://other.honest.net", "authorization_servers": ["https://other.honest.net"]}
    )


def nothing(_: object) -> None:
    return None


def put(**changes: str) -> Forgery:
    return lambda answer: answer.update(changes)


AFTER: list[tuple[str, Crime, Forgery, str, str]] = [
    # name, crime, forged callback, code, words in the log
    ("18 unknown state", nothing, put(state="x" * 43), "expired", "checklist 13, 18:"),
    ("18 no state", nothing, lambda answer: answer.pop("state"), "callback-malformed", "checklist 18:"),
    ("18 no iss", nothing, lambda answer: answer.pop("iss"), "wrong-issuer", "checklist 18:"),
    ("18 other iss", nothing, put(iss="https://other.honest.net"), "wrong-issuer", "checklist 18:"),
    ("18 iss with a slash", nothing, put(iss=f"{ISSUER}/"), "wrong-issuer", "checklist 18:"),
    ("18 iss in capitals", nothing, put(iss=ISSUER.upper()), "wrong-issuer", "checklist 18:"),
    ("18 no code", nothing, lambda answer: answer.pop("code"), "callback-malformed", "neither a code nor an error"),
    ("18 foreign code", nothing, put(code="foreign"), "code-refused", "invalid_grant"),
    ("19 a stranger", granted(sub=STRANGER), nothing, "not-owner", "checklist 19:"),
    ("19 owner's DID in capitals", granted(sub=OWNER.upper()), nothing, "token-broken", "checklist 19:"),
    ("19 no sub", granted(sub=None), nothing, "token-broken", "checklist 21:"),
    ("19 sub is a list", granted(sub=[OWNER]), nothing, "token-broken", "checklist 21:"),
    ("20 moved meanwhile", moved, nothing, "moved", "checklist 20:"),
    ("20 vouched for by another", resource(authorization_servers=["https://other.honest.net"]), nothing, "moved", "checklist 20:"),
    ("20 PDS down", answers(RESOURCE_AT, ok({}, 502)), nothing, "pds-unreachable", "answered 502"),
    ("21 bearer", granted(token_type="Bearer"), nothing, "token-broken", "checklist 21: token_type"),
    ("21 scope", granted(scope="transition:generic"), nothing, "token-broken", "checklist 21: the scope"),
    ("21 scope by prefix", granted(scope="atprotoX"), nothing, "token-broken", "checklist 21: the scope"),
    ("21 no scope", granted(scope=None), nothing, "token-broken", "checklist 21:"),
    ("21 empty token", granted(access_token=""), nothing, "token-broken", "checklist 21:"),
    ("15 token without nonce", lambda world: world.without_nonce.add("auth.honest.net/token"), nothing, "server-broken", "checklist 15:"),
    ("31 token redirects", answers("auth.honest.net/token", to_elsewhere), nothing, "server-broken", "checklist 31:"),
    ("31 token is huge", answers("auth.honest.net/token", ok({"sub": "x" * 300_000})), nothing, "server-broken", "checklist 31:"),
    ("token is text", answers("auth.honest.net/token", lambda: PlainTextResponse("{}", headers={"dpop-nonce": "x"})), nothing, "server-broken", "not JSON"),
    ("token server down", answers("auth.honest.net/token", ok({}, 500)), nothing, "server-unreachable", "answered 500"),
    ("23 denied", nothing, put(error="access_denied"), "denied", "access_denied"),
    ("23 error with other iss", nothing, put(error="access_denied", iss=PDS), "wrong-issuer", "checklist 18:"),
    ("23 error without iss", nothing, lambda answer: (answer.update(error="x"), answer.pop("iss")), "wrong-issuer", "checklist 18:"),
    ("23 error with unknown state", nothing, put(error="access_denied", state="y" * 43), "expired", "checklist 13, 18:"),
    ("23 server error", nothing, put(error="temporarily_unavailable\x1b[31m"), "server-error", r"temporarily_unavailable\x1b"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("crime", "forge", "code", "words"), [case[1:] for case in AFTER], ids=[case[0] for case in AFTER]
)
async def test_a_sign_in_does_not_end_well(
    sign_in: SignIn,
    world: World,
    caplog: pytest.LogCaptureFixture,
    crime: Crime,
    forge: Forgery,
    code: str,
    words: str,
) -> None:
    started = await sign_in.start()
    answer = dict(world.authorize(started.redirect))
    crime(world)
    forge(answer)
    with pytest.raises(SignInProblem) as caught:
        await sign_in.finish(answer.items(), started.binding)
    assert caught.value.code == f"sign-in.{code}", caught.value.reason
    assert words in caplog.text
    assert "\x1b" not in caplog.text
    assert caught.value.hint
