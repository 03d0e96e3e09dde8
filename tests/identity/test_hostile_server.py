"""Breaks each item of the checklist in turn: each is refused, and the log names the item and the reason."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from tests.identity.fake_atproto import (
    ISSUER,
    OWNER,
    PDS,
    STRANGER,
    FakeAtproto,
    FakeAtprotoServer,
    did_document,
    server_metadata,
)

from freehold.home import Home
from freehold.identity.atproto.flow import OAuthFlow
from freehold.identity.atproto.problems import SignInProblem

Fault = Callable[[FakeAtproto], object]
CallbackChange = Callable[[dict[str, str]], object]

RESOURCE_AT = "pds.honest.net/.well-known/oauth-protected-resource"
METADATA_AT = "auth.honest.net/.well-known/oauth-authorization-server"
PLC_AT = f"plc.directory/{OWNER}"


def replies(at: str, response: Callable[[], Response]) -> Fault:
    return lambda atproto: atproto.overrides.update({at: lambda _: response()})


def document(pds: Any = PDS, **changes: Any) -> Fault:
    return lambda atproto: setattr(atproto, "did_document", {**did_document(pds=pds), **changes})


def service(**changes: Any) -> Fault:
    entry = {**did_document()["service"][0], **changes}
    return document(service=[entry])


def resource(**changes: Any) -> Fault:
    return lambda atproto: atproto.resource.update(changes)


def metadata(**changes: Any) -> Fault:
    return lambda atproto: atproto.metadata.update(changes)


def omitting(name: str) -> Fault:
    return lambda atproto: atproto.metadata.pop(name)


def removing(name: str, value: str) -> Fault:
    return lambda atproto: atproto.metadata[name].remove(value)


def ok(content: Any, status: int = 200) -> Callable[[], Response]:
    return lambda: JSONResponse(content, status)


def redirect_to_other() -> Response:
    return RedirectResponse("https://other.honest.net/", 302)


START_CASES: list[tuple[str, Fault, str, str]] = [
    # name, fault, error code, text in the log
    ("3 document of another DID", document(id=STRANGER), "directory-broken", "checklist 3: the document of"),
    ("3 document without id", document(id=None), "directory-broken", "checklist 3: the document"),
    ("3 document is a list", replies(PLC_AT, ok([1])), "directory-broken", "checklist 3: the reply is not a JSON object"),
    ("3 document is text", replies(PLC_AT, lambda: PlainTextResponse("{}")), "directory-broken", "not JSON"),
    ("3 document is deep", replies(PLC_AT, lambda: Response("[" * 100_000, media_type="application/json")), "directory-broken", "checklist 3: the reply is not valid JSON"),
    ("31 directory redirects", replies(PLC_AT, redirect_to_other), "directory-broken", "checklist 31:"),
    ("31 document is huge", replies(PLC_AT, ok({"id": "x" * 300_000})), "directory-broken", "checklist 31: plc.directory sent more than"),
    ("2 DID unknown", replies(PLC_AT, ok({}, 404)), "did-unknown", "answered 404"),
    ("2 DID tombstoned", replies(PLC_AT, ok({}, 410)), "did-unknown", "answered 410"),
    ("directory down", replies(PLC_AT, ok({}, 503)), "directory-unreachable", "answered 503"),
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
    ("7 not found", replies(RESOURCE_AT, ok({}, 404)), "pds-broken", "checklist 7:"),
    ("7 created", replies(RESOURCE_AT, ok({}, 201)), "pds-broken", "checklist 7:"),
    ("7 redirect", replies(RESOURCE_AT, redirect_to_other), "pds-broken", "checklist 31:"),
    ("7 PDS down", replies(RESOURCE_AT, ok({}, 502)), "pds-unreachable", "answered 502"),
    ("7 text", replies(RESOURCE_AT, lambda: PlainTextResponse("{}")), "pds-broken", "checklist 7:"),
    ("7 no server", resource(authorization_servers=[]), "pds-broken", "checklist 7: 0 authorization servers"),
    ("7 two servers", resource(authorization_servers=[ISSUER, PDS]), "pds-broken", "checklist 7: 2 authorization servers"),
    ("7 server with a path", resource(authorization_servers=[f"{ISSUER}/"]), "pds-broken", "checklist 7:"),
    ("7 server by http", resource(authorization_servers=["http://auth.honest.net"]), "pds-broken", "checklist 7:"),
    ("7 server with default port", resource(authorization_servers=[f"{ISSUER}:443"]), "pds-broken", "checklist 7:"),
    ("7 server is a number", resource(authorization_servers=[1]), "pds-broken", "checklist 7:"),
    ("7 resource of another PDS", resource(resource="https://other.honest.net"), "pds-broken", "checklist 7:"),
    ("8 another issuer", metadata(issuer=PDS), "server-broken", "checklist 8:"),
    ("8 issuer with a slash", metadata(issuer=f"{ISSUER}/"), "server-broken", "checklist 8:"),
    ("8 not found", replies(METADATA_AT, ok({}, 404)), "server-broken", "checklist 8:"),
    ("8 accepted", replies(METADATA_AT, ok(server_metadata(), 202)), "server-broken", "checklist 8:"),
    ("8 redirect", replies(METADATA_AT, redirect_to_other), "server-broken", "checklist 31:"),
    ("8 server down", replies(METADATA_AT, ok({}, 500)), "server-unreachable", "answered 500"),
    ("9 alg none", metadata(token_endpoint_auth_signing_alg_values_supported=["ES256", "none"]), "server-broken", "contains none"),
    ("9 DPoP alg none", metadata(dpop_signing_alg_values_supported=["ES256", "none"]), "server-broken", "contains none"),
    ("9 other PDS", metadata(protected_resources=["https://other.honest.net"]), "server-broken", "checklist 9:"),
    *(
        (f"9 {name} lacks {value}", removing(name, value), "server-broken", f"checklist 9: {name} lacks {value}")
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
        (f"9 {name} is absent", omitting(name), "server-broken", "checklist 9:")
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
    ("11 no request_uri", lambda atproto: atproto.pushed.update(request_uri=None), "server-broken", "checklist 11:"),
    ("11 request_uri with blanks", lambda atproto: atproto.pushed.update(request_uri="a b"), "server-broken", "checklist 11:"),
    ("11 no life", lambda atproto: atproto.pushed.update(expires_in=0), "server-broken", "checklist 11:"),
    ("11 PAR redirects", replies("auth.honest.net/par", redirect_to_other), "server-broken", "checklist 31:"),
    ("11 PAR down", replies("auth.honest.net/par", ok({}, 503)), "server-unreachable", "answered 503"),
    ("11 PAR refuses", replies("auth.honest.net/par", ok({"error": "invalid_client"}, 400)), "request-refused", "invalid_client"),
    ("15 PAR without nonce", lambda atproto: atproto.without_nonce.add("auth.honest.net/par"), "request-refused", "use_dpop_nonce"),
    ("15 endless nonces", lambda atproto: setattr(atproto, "endless_nonce", True), "request-refused", "use_dpop_nonce"),
    ("15 PAR accepts without nonce", replies("auth.honest.net/par", ok({"request_uri": "urn:x", "expires_in": 60}, 201)), "server-broken", "checklist 15:"),
]  # fmt: skip


@pytest.fixture
def flow(atproto_server: FakeAtprotoServer, home: Home, atproto: FakeAtproto) -> Iterator[OAuthFlow]:
    flow = OAuthFlow(
        owner=OWNER,
        client=atproto.client,
        database=home.identity,
        on_event=lambda kind, data: None,
        network=atproto_server.network,
    )
    yield flow
    flow.close()


@pytest.mark.parametrize(
    ("fault", "code", "text"), [case[1:] for case in START_CASES], ids=[case[0] for case in START_CASES]
)
async def test_a_faulty_server_cannot_start_a_sign_in(
    flow: OAuthFlow, atproto: FakeAtproto, caplog: pytest.LogCaptureFixture, fault: Fault, code: str, text: str
) -> None:
    fault(atproto)
    with pytest.raises(SignInProblem) as caught:
        await flow.start()
    assert caught.value.code == f"sign-in.{code}", caught.value.reason
    assert text in caplog.text
    assert caught.value.hint


def granted(**changes: Any) -> Fault:
    return lambda atproto: atproto.granted.update(changes)


def moved(atproto: FakeAtproto) -> None:
    atproto.did_document = did_document(pds="https://other.honest.net")
    atproto.overrides["other.honest.net/.well-known/oauth-protected-resource"] = lambda _: JSONResponse(
        {"resource": "https://other.honest.net", "authorization_servers": ["https://other.honest.net"]}
    )


def unchanged(_: object) -> None:
    return None


def setting(**changes: str) -> CallbackChange:
    return lambda callback: callback.update(changes)


FINISH_CASES: list[tuple[str, Fault, CallbackChange, str, str]] = [
    # name, fault, changed callback, error code, text in the log
    ("18 unknown state", unchanged, setting(state="x" * 43), "expired", "checklist 13, 18:"),
    ("18 no state", unchanged, lambda callback: callback.pop("state"), "callback-malformed", "checklist 18:"),
    ("18 no iss", unchanged, lambda callback: callback.pop("iss"), "wrong-issuer", "checklist 18:"),
    ("18 other iss", unchanged, setting(iss="https://other.honest.net"), "wrong-issuer", "checklist 18:"),
    ("18 iss with a slash", unchanged, setting(iss=f"{ISSUER}/"), "wrong-issuer", "checklist 18:"),
    ("18 iss in capitals", unchanged, setting(iss=ISSUER.upper()), "wrong-issuer", "checklist 18:"),
    ("18 no code", unchanged, lambda callback: callback.pop("code"), "callback-malformed", "neither a code nor an error"),
    ("18 foreign code", unchanged, setting(code="foreign"), "code-refused", "invalid_grant"),
    ("19 a stranger", granted(sub=STRANGER), unchanged, "not-owner", "checklist 19:"),
    ("19 owner's DID in capitals", granted(sub=OWNER.upper()), unchanged, "token-broken", "checklist 19:"),
    ("19 no sub", granted(sub=None), unchanged, "token-broken", "checklist 21:"),
    ("19 sub is a list", granted(sub=[OWNER]), unchanged, "token-broken", "checklist 21:"),
    ("20 moved during the sign-in", moved, unchanged, "moved", "checklist 20:"),
    ("20 another server", resource(authorization_servers=["https://other.honest.net"]), unchanged, "moved", "checklist 20:"),
    ("20 PDS down", replies(RESOURCE_AT, ok({}, 502)), unchanged, "pds-unreachable", "answered 502"),
    ("21 bearer", granted(token_type="Bearer"), unchanged, "token-broken", "checklist 21: token_type"),
    ("21 scope", granted(scope="transition:generic"), unchanged, "token-broken", "checklist 21: the scope"),
    ("21 scope by prefix", granted(scope="atprotoX"), unchanged, "token-broken", "checklist 21: the scope"),
    ("21 no scope", granted(scope=None), unchanged, "token-broken", "checklist 21:"),
    ("21 empty token", granted(access_token=""), unchanged, "token-broken", "checklist 21:"),
    ("15 token without nonce", lambda atproto: atproto.without_nonce.add("auth.honest.net/token"), unchanged, "server-broken", "checklist 15:"),
    ("31 token redirects", replies("auth.honest.net/token", redirect_to_other), unchanged, "server-broken", "checklist 31:"),
    ("31 token is huge", replies("auth.honest.net/token", ok({"sub": "x" * 300_000})), unchanged, "server-broken", "checklist 31:"),
    ("token is text", replies("auth.honest.net/token", lambda: PlainTextResponse("{}", headers={"dpop-nonce": "x"})), unchanged, "server-broken", "not JSON"),
    ("token server down", replies("auth.honest.net/token", ok({}, 500)), unchanged, "server-unreachable", "answered 500"),
    ("23 denied", unchanged, setting(error="access_denied"), "denied", "access_denied"),
    ("23 error with other iss", unchanged, setting(error="access_denied", iss=PDS), "wrong-issuer", "checklist 18:"),
    ("23 error without iss", unchanged, lambda callback: (callback.update(error="x"), callback.pop("iss")), "wrong-issuer", "checklist 18:"),
    ("23 error with unknown state", unchanged, setting(error="access_denied", state="y" * 43), "expired", "checklist 13, 18:"),
    ("23 server error", unchanged, setting(error="temporarily_unavailable\x1b[31m"), "server-error", r"temporarily_unavailable\x1b"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "change", "code", "text"), [case[1:] for case in FINISH_CASES], ids=[case[0] for case in FINISH_CASES]
)
async def test_a_faulty_callback_or_token_is_refused(
    flow: OAuthFlow,
    atproto: FakeAtproto,
    caplog: pytest.LogCaptureFixture,
    fault: Fault,
    change: CallbackChange,
    code: str,
    text: str,
) -> None:
    started = await flow.start()
    callback = dict(atproto.authorize(started.redirect))
    fault(atproto)
    change(callback)
    with pytest.raises(SignInProblem) as caught:
        await flow.finish(callback.items(), started.binding)
    assert caught.value.code == f"sign-in.{code}", caught.value.reason
    assert text in caplog.text
    assert "\x1b" not in caplog.text
    assert caught.value.hint
