"""A fake DID directory, PDS and authorization server in one application. A test changes its data to make it faulty.

Unchanged, it is stricter than a real PDS: it refuses a client that omits any item of the checklist.
"""

import base64
import hashlib
import json
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from joserfc import jwt
from joserfc.jwk import ECKey
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send
from tests.e2e.atproto.app_server import serve
from tests.e2e.atproto.certificates import Certificates, make_certificates

from freehold.identity.atproto.fetcher import NetworkOverrides
from freehold.identity.atproto.oauth_client import OAuthClient

OWNER = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
STRANGER = "did:plc:z72i7hdynmk6r22z27h6tvur"
PDS = "https://pds.honest.net"
ISSUER = "https://auth.honest.net"
NAMES = ["plc.directory", "pds.honest.net", "auth.honest.net", "other.honest.net", "alice.honest.net"]

Override = Callable[[Request], Response]


def did_document(did: str = OWNER, pds: Any = PDS) -> dict[str, Any]:
    service = {"id": "#atproto_pds", "type": "AtprotoPersonalDataServer", "serviceEndpoint": pds}
    return {
        "@context": ["https://www.w3.org/ns/did/v1"],
        "id": did,
        "alsoKnownAs": ["at://alice.honest.net"],
        "service": [service],
    }


def server_metadata() -> dict[str, Any]:
    return {
        "issuer": ISSUER,
        "authorization_endpoint": f"{ISSUER}/authorize",
        "token_endpoint": f"{ISSUER}/token",
        "pushed_authorization_request_endpoint": f"{ISSUER}/par",
        "revocation_endpoint": f"{ISSUER}/revoke",
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": ["ES256"],
        "scopes_supported": ["atproto", "transition:generic"],
        "dpop_signing_alg_values_supported": ["ES256"],
        "authorization_response_iss_parameter_supported": True,
        "require_pushed_authorization_requests": True,
        "client_id_metadata_document_supported": True,
        "protected_resources": [PDS],
    }


@dataclass
class FakeAtproto:
    """`overrides` replaces the reply at "host/path"; the other fields are the data of normal replies."""

    client: OAuthClient
    did_document: dict[str, Any] = field(default_factory=did_document)
    resource: dict[str, Any] = field(default_factory=lambda: {"resource": PDS, "authorization_servers": [ISSUER]})
    metadata: dict[str, Any] = field(default_factory=server_metadata)
    pushed: dict[str, Any] = field(default_factory=lambda: {"expires_in": 300})
    granted: dict[str, Any] = field(default_factory=lambda: {"token_type": "DPoP", "scope": "atproto", "sub": OWNER})
    overrides: dict[str, Override] = field(default_factory=dict)
    without_nonce: set[str] = field(default_factory=set)
    endless_nonce: bool = False

    requested: list[str] = field(default_factory=list)
    requests: dict[str, dict[str, str]] = field(default_factory=dict)
    grants: dict[str, dict[str, str]] = field(default_factory=dict)
    revoked: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    proofs: list[dict[str, Any]] = field(default_factory=list)
    nonce: str = "nonce-0"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        at = f"{request.headers['host']}{request.url.path}"
        self.requested.append(at)
        form = dict(parse_qsl((await request.body()).decode()))
        override = self.overrides.get(at)
        response = override(request) if override else self._answer(at, request, form)
        await response(scope, receive, send)

    def _answer(self, at: str, request: Request, form: dict[str, str]) -> Response:
        if at.startswith("plc.directory/"):
            return JSONResponse(self.did_document, media_type="application/did+ld+json")
        if at == "pds.honest.net/.well-known/oauth-protected-resource":
            return JSONResponse(self.resource)
        if at == "auth.honest.net/.well-known/oauth-authorization-server":
            return JSONResponse(self.metadata)
        handler = {
            "auth.honest.net/par": self._push,
            "auth.honest.net/token": self._grant,
            "auth.honest.net/revoke": self._revoke,
        }.get(at)
        if handler is None or request.method != "POST":
            return Response(status_code=404)
        try:
            thumbprint = self._check_proof(request)
            self._check_client(form)
        except NonceRequired:
            return self._nonced(at, JSONResponse({"error": "use_dpop_nonce"}, 400))
        except ClockSkew:
            return self._nonced(at, JSONResponse({"error": "invalid_dpop_proof"}, 401))
        return self._nonced(at, handler(form, thumbprint))

    def authorize(self, redirect: str) -> list[tuple[str, str]]:
        """The callback query after the owner has consented."""
        (request_uri,) = (
            part.split("=", 1)[1] for part in redirect.split("?")[1].split("&") if part.startswith("request_uri")
        )
        request = self.requests[request_uri.replace("%3A", ":")]
        code = secrets.token_urlsafe()
        self.grants[code] = request
        return [("state", request["state"]), ("iss", ISSUER), ("code", code)]

    def _push(self, form: dict[str, str], thumbprint: str) -> Response:
        assert form["response_type"] == "code"
        assert form["code_challenge_method"] == "S256"
        assert len(form["code_challenge"]) == 43
        assert len(form["state"]) >= 43
        assert form["scope"] == self.client.scope
        assert form["redirect_uri"] == self.client.redirect_uri
        assert form["login_hint"] == OWNER
        uri = f"urn:ietf:params:oauth:request_uri:{secrets.token_hex(8)}"
        self.requests[uri] = {**form, "thumbprint": thumbprint}
        return JSONResponse({"request_uri": uri, **self.pushed}, 201)

    def _grant(self, form: dict[str, str], thumbprint: str) -> Response:
        request = self.grants.pop(form["code"], None)
        if request is None:
            return JSONResponse({"error": "invalid_grant", "error_description": "no\x1b[31m such code"}, 400)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        assert form["grant_type"] == "authorization_code"
        assert challenge.decode() == request["code_challenge"]
        assert form["redirect_uri"] == request["redirect_uri"]
        assert thumbprint == request["thumbprint"]
        return JSONResponse({"access_token": "the-access-token", "refresh_token": "the-refresh-token", **self.granted})

    def _revoke(self, form: dict[str, str], thumbprint: str) -> Response:
        self.revoked.append(form["token"])
        return JSONResponse({})

    def _check_proof(self, request: Request) -> str:
        proof = request.headers["dpop"]
        header = json.loads(base64.urlsafe_b64decode(proof.split(".")[0] + "=="))
        assert (header["typ"], header["alg"]) == ("dpop+jwt", "ES256")
        assert "d" not in header["jwk"]
        key = ECKey.import_key(header["jwk"])
        claims = jwt.decode(proof, key, algorithms=["ES256"]).claims
        self.proofs.append(claims)
        assert claims["htm"] == "POST"
        assert claims["htu"] == f"https://{request.headers['host']}{request.url.path}"
        self._use(claims["jti"])
        if abs(claims["iat"] - time.time()) > 60:
            raise ClockSkew
        if claims.get("nonce") != self.nonce or self.endless_nonce:
            raise NonceRequired
        return key.thumbprint()

    def _check_client(self, form: dict[str, str]) -> None:
        assert form["client_id"] == self.client.client_id
        if self.client.key is None:
            assert "client_assertion" not in form
            return
        jwks: Any = self.client.jwks()
        public: dict[str, Any] = jwks["keys"][0]
        token = jwt.decode(form["client_assertion"], ECKey.import_key(public), algorithms=["ES256"])
        assert token.header["kid"] == public["kid"]
        assert (token.claims["iss"], token.claims["sub"], token.claims["aud"]) == (
            self.client.client_id,
            self.client.client_id,
            ISSUER,
        )
        self._use(token.claims["jti"])

    def _use(self, identifier: str) -> None:
        assert len(identifier) >= 16
        assert identifier not in self.used, "a proof or assertion was sent twice"
        self.used.add(identifier)

    def _nonced(self, at: str, response: Response) -> Response:
        self.nonce = f"nonce-{secrets.token_hex(4)}"
        if at not in self.without_nonce:
            response.headers["dpop-nonce"] = self.nonce
        return response


class NonceRequired(Exception):
    pass


class ClockSkew(Exception):
    pass


@dataclass
class FakeAtprotoServer:
    """The running server; each test sets its own `atproto`."""

    network: NetworkOverrides
    certificates: Certificates
    port: int
    atproto: FakeAtproto | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.atproto is not None
        await self.atproto(scope, receive, send)


@contextmanager
def run_fake_atproto(folder: Path, nameserver: tuple[str, int] | None = None) -> Iterator[FakeAtprotoServer]:
    certificates = make_certificates(folder, NAMES)
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    port: int = listener.getsockname()[1]
    network = NetworkOverrides(
        routes=dict.fromkeys(NAMES, ("127.0.0.1", port)), authority=certificates.authority, nameserver=nameserver
    )
    atproto_server = FakeAtprotoServer(network, certificates, port)
    with serve(atproto_server, listener, certificates):
        yield atproto_server
