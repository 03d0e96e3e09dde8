"""A sign-in of the owner to a remote server by OAuth, on the host: tokens are in the vault, and none is inside.

As MCP's authorization says: metadata of the protected resource (RFC 9728), metadata of its authorization server
(RFC 8414), registration of this client (RFC 7591), and a code with PKCE for exactly this resource (RFC 8707).
"""

import asyncio
import base64
import hashlib
import json
import re
import secrets
import time
from collections import defaultdict
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urljoin, urlsplit

from freehold import __version__
from freehold.egress.host_client import HostClient, open_host_client
from freehold.errors import FreeholdError
from freehold.mcp.protocol import VERSION
from freehold.mcp.token_address import may_carry_token

if TYPE_CHECKING:
    from freehold.egress.service import EgressService
    from freehold.egress.vault import Vault

Json = dict[str, Any]
MAX_DOCUMENT = 256 * 1024
PENDING_SECONDS = 600.0
MAX_PENDING = 20
EARLY = 60.0
"""Seconds before its end at which a token is renewed."""
REQUEST_TIMEOUT = 30.0
_METADATA = re.compile(r'resource_metadata="?([^",\s]{1,2000})')
_RESOURCE = "/.well-known/oauth-protected-resource"
_FIRST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": VERSION,
        "capabilities": {},
        "clientInfo": {"name": "freehold", "version": __version__},
    },
}
"""What a server is asked without a token: some look at the request before they look for who sent it."""


@dataclass(frozen=True)
class McpTokens:
    """What the vault keeps for one server."""

    access: str
    refresh: str | None
    expires: float | None
    token_endpoint: str
    client: str
    resource: str


@dataclass(frozen=True)
class PendingSignIn:
    server: str
    resource: str
    verifier: str
    client: str
    token_endpoint: str
    issuer: str
    redirect: str
    began: float


class McpSignIns:
    """Begins sign-ins, finishes them with the code that comes back, and renews tokens."""

    def __init__(self, vault: "Vault") -> None:
        self._vault = vault
        self._pending: dict[str, PendingSignIn] = {}
        self._renewing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By server: one that does not answer delays no other."""

    async def begin(self, egress: "EgressService", server: str, resource: str, redirect: str, *, who: str) -> str:
        """The address that the owner's browser opens. Raises `mcp.bad-answer`, and `mcp.bad-value` without TLS."""
        if not may_carry_token(resource):
            raise FreeholdError(
                "mcp.bad-value", f"{resource[:200]} would be sent your token without TLS", hint="Use https"
            )
        async with _open_client(egress, resource, who) as http:
            issuer, scopes = await _find_issuer(http, resource)
            metadata = await _read_issuer(http, issuer)
            endpoints = {name: _read_address(metadata, name) for name in ("authorization_endpoint", "token_endpoint")}
            if "S256" not in (metadata.get("code_challenge_methods_supported") or ["S256"]):
                raise _bad_answer("does not support PKCE")
            client = await _register(http, metadata, redirect)
        verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(32)
        self._forget_old()
        self._pending[state] = PendingSignIn(
            server, resource, verifier, client, endpoints["token_endpoint"], issuer, redirect, time.monotonic()
        )
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": client,
            "redirect_uri": redirect,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "resource": resource,
            **({"scope": " ".join(scopes)} if scopes else {}),
        }
        address = endpoints["authorization_endpoint"]
        return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"

    async def finish(self, egress: "EgressService", state: str, code: str, issuer: str | None) -> str:
        """Exchange the code that came back, and keep the tokens. Returns the server's name. A state counts once."""
        self._forget_old()
        pending = self._pending.pop(state, None)
        if pending is None:
            raise FreeholdError("mcp.expired", "This sign-in is not known, or took too long", hint="Begin it again")
        if not code:
            raise FreeholdError("mcp.denied", f"The sign-in to {pending.server} was refused there")
        if issuer is not None and issuer.rstrip("/") != pending.issuer.rstrip("/"):
            raise _bad_answer("sent a code of another issuer")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": pending.redirect,
            "client_id": pending.client,
            "code_verifier": pending.verifier,
            "resource": pending.resource,
        }
        tokens = await self._fetch_tokens(egress, form, pending.token_endpoint, pending.client, pending.resource, None)
        async with self._renewing[pending.server]:  # or a renewal that is under way would put the old ones back
            await asyncio.to_thread(self._keep, pending.server, tokens)
        return pending.server

    async def find_token(self, egress: "EgressService", server: str, resource: str) -> str | None:
        """The access token for a server, renewed when it is about to end; None when the owner has not signed in.

        A token for another address than `resource` is not used, and none is sent without TLS to another machine than
        one of the owner.
        """
        async with self._renewing[server]:
            tokens = await asyncio.to_thread(self.read, server)
            if tokens is None or tokens.resource != resource or not may_carry_token(resource):
                return None
            if tokens.expires is None or tokens.expires > time.time() + EARLY:
                return tokens.access
            if tokens.refresh is None:
                return None
            form = {
                "grant_type": "refresh_token",
                "refresh_token": tokens.refresh,
                "client_id": tokens.client,
                "resource": tokens.resource,
            }
            try:
                renewed = await self._fetch_tokens(
                    egress, form, tokens.token_endpoint, tokens.client, tokens.resource, tokens.refresh
                )
            except FreeholdError as error:
                error.hint = f"Try again, or sign in again: freehold mcp login {server}"
                raise
            await asyncio.to_thread(self._keep, server, renewed)
            return renewed.access

    def read(self, server: str) -> McpTokens | None:
        """Blocking."""
        try:
            return McpTokens(**json.loads(self._vault.get(_name(server)).reveal()))
        except FreeholdError as error:
            if error.code != "secret.not-found":
                raise
            return None
        except (ValueError, TypeError):
            return None

    async def sign_out(self, server: str) -> None:
        """Forget the tokens, also one that is being renewed. Idempotent."""
        async with self._renewing[server]:
            await asyncio.to_thread(self._forget, server)

    def _forget(self, server: str) -> None:
        try:
            self._vault.remove(_name(server))
        except FreeholdError as error:
            if error.code != "secret.not-found":
                raise

    def _keep(self, server: str, tokens: McpTokens) -> None:
        self._vault.set(_name(server), json.dumps(asdict(tokens)))

    async def _fetch_tokens(
        self, egress: "EgressService", form: Json, endpoint: str, client: str, resource: str, refresh: str | None
    ) -> McpTokens:
        async with _open_client(egress, endpoint, "owner") as http:
            answer = await _send(http, "POST", endpoint, data=form)
        access, seconds = answer.get("access_token"), answer.get("expires_in")
        if not isinstance(access, str) or not access or str(answer.get("token_type", "bearer")).lower() != "bearer":
            raise _bad_answer("gave no token")
        given = answer.get("refresh_token")
        expires = time.time() + float(seconds) if isinstance(seconds, int | float) else None
        return McpTokens(access, given if isinstance(given, str) else refresh, expires, endpoint, client, resource)

    def _forget_old(self) -> None:
        now = time.monotonic()
        for state in [one for one, pending in self._pending.items() if pending.began < now - PENDING_SECONDS]:
            del self._pending[state]
        while len(self._pending) >= MAX_PENDING:
            del self._pending[next(iter(self._pending))]


def _name(server: str) -> str:
    return f"mcp-{server}"


def _bad_answer(words: str) -> FreeholdError:
    return FreeholdError("mcp.bad-answer", f"The sign-in failed: the server {words}")


def _open_client(egress: "EgressService", address: str, who: str) -> AbstractAsyncContextManager[HostClient]:
    return open_host_client(egress, "mcp-sign-in", address, who=who, timeout=REQUEST_TIMEOUT)


async def _request(http: HostClient, method: str, address: str, **more: Any) -> tuple[int, str, bytes]:
    """The status, the challenge and the body of an answer."""
    import httpx2

    await http.allow(address)
    body = bytearray()
    headers = {"accept": "application/json, text/event-stream", "accept-encoding": "identity"}
    try:
        async with http.http.stream(method, address, headers=headers, **more) as response:
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > MAX_DOCUMENT:
                    raise _bad_answer(f"sent more than {MAX_DOCUMENT} bytes")
            return response.status_code, response.headers.get("www-authenticate", ""), bytes(body)
    except httpx2.HTTPError as error:
        raise FreeholdError("mcp.unreachable", f"{address[:200]} cannot be reached: {str(error)[:200]}") from error


async def _send(http: HostClient, method: str, address: str, **more: Any) -> Json:
    status, _, body = await _request(http, method, address, **more)
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if status >= 300 or not isinstance(answer, dict):
        reason = answer.get("error_description") or answer.get("error") if isinstance(answer, dict) else None
        raise _bad_answer(f"answered {status}{f': {str(reason)[:200]}' if reason else ''} at {address[:200]}")
    return answer


async def _read_first(http: HostClient, addresses: list[str]) -> Json:
    """The document at the first of these addresses that has one. Raises the failure of the first."""
    failures: list[FreeholdError] = []
    for address in addresses:
        try:
            return await _send(http, "GET", address)
        except FreeholdError as error:
            failures.append(error)
    raise failures[0]


async def _find_issuer(http: HostClient, resource: str) -> tuple[str, list[str]]:
    """The authorization server of a resource, and the scopes that it names."""
    status, challenge, _ = await _request(http, "POST", resource, json=_FIRST)
    if status != 401:
        raise FreeholdError("mcp.not-offered", f"The server asks for no sign-in: it answered {status}")
    named = _METADATA.search(challenge)
    parts = urlsplit(resource)
    root = f"{parts.scheme}://{parts.netloc}"
    places = [urljoin(resource, named[1])] if named else [f"{root}{_RESOURCE}{parts.path}", f"{root}{_RESOURCE}"]
    _require_safe(places[0], resource)
    document = await _read_first(http, places)
    if str(document.get("resource") or resource).rstrip("/") not in (resource.rstrip("/"), root):
        raise _bad_answer("describes another resource than itself")
    servers, scopes = document.get("authorization_servers"), document.get("scopes_supported")
    issuer = servers[0] if isinstance(servers, list) and servers and isinstance(servers[0], str) else root
    _require_safe(issuer, resource)
    listed = [one for one in scopes if isinstance(one, str)][:50] if isinstance(scopes, list) else []
    return issuer, listed


async def _read_issuer(http: HostClient, issuer: str) -> Json:
    parts = urlsplit(issuer)
    root, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    places = [f"{root}/.well-known/{kind}{path}" for kind in ("oauth-authorization-server", "openid-configuration")]
    if path:
        places.append(f"{root}{path}/.well-known/openid-configuration")  # as OpenID places it
    found = await _read_first(http, places)
    if str(found.get("issuer")).rstrip("/") != issuer.rstrip("/"):
        raise _bad_answer("names another issuer than the one that was asked")
    return found


async def _register(http: HostClient, metadata: Json, redirect: str) -> str:
    """A public client for this Freehold."""
    if not isinstance(metadata.get("registration_endpoint"), str):
        raise FreeholdError(
            "mcp.not-offered",
            "The server does not let clients register",
            hint="Get a token from its owner, and set key in freehold.toml",
        )
    body = {
        "client_name": "Freehold",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        # A web application, which is assumed otherwise, has no address without TLS.
        "application_type": "web" if redirect.startswith("https://") else "native",
    }
    answer = await _send(http, "POST", _read_address(metadata, "registration_endpoint"), json=body)
    client = answer.get("client_id")
    if not isinstance(client, str) or not 0 < len(client) <= 500 or not client.isprintable():
        raise _bad_answer("gave no name for this client")
    return client


def _read_address(metadata: Json, name: str) -> str:
    address = metadata.get(name)
    if not isinstance(address, str) or len(address) > 2000:
        raise _bad_answer(f"has no {name}")
    _require_safe(address, str(metadata.get("issuer")))
    return address


def _require_safe(address: str, beside: str) -> None:
    """https; or http to a machine of the owner, where the server that names the address is one without TLS itself."""
    parts = urlsplit(address)
    leaves_tls = parts.scheme == "http" and urlsplit(beside).scheme != "http"
    if leaves_tls or not may_carry_token(address):
        raise _bad_answer("names an address that is not safe")
