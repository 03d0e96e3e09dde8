"""The sign-in of Codex with a ChatGPT subscription: its file `auth.json`, kept in the vault and renewed on the host."""

import asyncio
import base64
import binascii
import json
import time
from dataclasses import dataclass
from typing import Any

from freehold.egress.http_exchange import HttpExchange
from freehold.egress.models.budget import BudgetLimits
from freehold.egress.models.provider import Provider
from freehold.egress.models.upstream import UpstreamPool
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError

ACCOUNT_HEADER = "chatgpt-account-id"
CLIENT_ID = "app_EMoamEEZ73f0CkXaXp7hrann"
"""The public name of the Codex command line at OpenAI's sign-in."""
SIGN_IN = Provider("Codex sign-in", "openai", "https", "auth.openai.com", 443, "", None, None, BudgetLimits())
TOKEN_PATH = "/oauth/token"  # noqa: S105 - a path
REFRESH_BEFORE = 24 * 3600.0
"""Seconds before the end of an access token from which a new one is requested. One is valid for about ten days."""
RETRY_DELAY = 300.0
"""Seconds until another try when the sign-in server could not be reached, as long as the token is still valid."""
REFRESH_TIMEOUT = 20.0
MAX_BYTES = 256 * 1024
_CLAIM = "https://api.openai.com/auth"


@dataclass(frozen=True)
class CodexSignIn:
    """The tokens of a sign-in. Their `repr` shows nothing of them."""

    access_token: str
    refresh_token: str

    def __repr__(self) -> str:
        return "CodexSignIn(•••)"

    def as_text(self) -> str:
        """One line, as the vault keeps it."""
        return json.dumps({"access_token": self.access_token, "refresh_token": self.refresh_token})

    @property
    def expires(self) -> float | None:
        """When the access token ends; None when it does not say so."""
        found = _claims(self.access_token).get("exp")
        return float(found) if isinstance(found, int | float) else None


def read_sign_in(text: str) -> CodexSignIn:
    """From the content of `auth.json`, or from what the vault keeps. Raises `models.bad-sign-in`."""
    try:
        content: Any = json.loads(text)
    except ValueError:
        content = None
    tokens = content.get("tokens", content) if isinstance(content, dict) else None
    found = [tokens.get(name) for name in ("access_token", "refresh_token")] if isinstance(tokens, dict) else []
    if len(found) == 2 and all(isinstance(token, str) and token.isascii() and token.isprintable() for token in found):
        access, refresh = (str(token).strip() for token in found)
        if access and refresh:
            return CodexSignIn(access, refresh)
    raise FreeholdError(
        "models.bad-sign-in",
        "This is not the sign-in of Codex: it has no access_token and refresh_token",
        hint="Run codex login on your own machine, and give the content of ~/.codex/auth.json",
    )


def read_account(access_token: str) -> str | None:
    """The account for which the token was issued, as the token itself says it."""
    claim = _claims(access_token).get(_CLAIM)
    account = claim.get("chatgpt_account_id") if isinstance(claim, dict) else None
    fits = isinstance(account, str) and account.isascii() and account.isprintable() and 0 < len(account) <= 200
    return str(account) if fits else None


def _claims(token: str) -> dict[str, Any]:
    """What a token says. It is not verified here: the server that gets it does that."""
    parts = token.split(".")
    try:
        content = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))) if len(parts) == 3 else {}
    except (ValueError, binascii.Error):
        return {}
    return content if isinstance(content, dict) else {}


class CodexRefresher:
    """Renews sign-ins in the vault. A refresh token works once, so only the gateway does this, one at a time."""

    def __init__(self, vault: Vault, upstreams: UpstreamPool, server: Provider = SIGN_IN) -> None:
        self._vault = vault
        self._upstreams = upstreams
        self._server = server
        self._turn = asyncio.Lock()
        self._due: dict[str, tuple[object, float]] = {}
        """When each sign-in is looked at again, for this version of the vault."""

    async def refresh(self, name: str, provider: Provider) -> None:
        """Raises `models.signed-out`, or `models.unreachable` when the token has ended and no other can be fetched."""
        if self._is_fresh(name):
            return
        async with self._turn:
            if self._is_fresh(name):
                return
            try:
                kept = await asyncio.to_thread(lambda: read_sign_in(self._vault.get(name).reveal()))
            except FreeholdError as error:
                if error.code == "secret.not-found":
                    return  # the request is refused for its missing key
                raise
            expires = kept.expires
            if expires is not None and expires - time.time() < REFRESH_BEFORE:
                expires = await self._renew(name, provider, kept, expires)
            self._remember(name, (expires or time.time() + REFRESH_BEFORE * 2) - REFRESH_BEFORE)

    def _is_fresh(self, name: str) -> bool:
        version, due = self._due.get(name, (None, 0.0))
        return version == self._vault.read_version()[:3] and time.time() < due

    def _remember(self, name: str, due: float) -> None:
        self._due[name] = (self._vault.read_version()[:3], max(due, time.time() + 1.0))

    async def _renew(self, name: str, provider: Provider, kept: CodexSignIn, expires: float) -> float | None:
        try:
            renewed = await self._request(provider, kept)
        except FreeholdError as error:
            if error.code == "models.unreachable" and expires > time.time():
                return time.time() + REFRESH_BEFORE + RETRY_DELAY
            raise
        await asyncio.to_thread(self._vault.set, name, renewed.as_text())
        return renewed.expires

    async def _request(self, provider: Provider, kept: CodexSignIn) -> CodexSignIn:
        asked = {
            "client_id": CLIENT_ID,
            "grant_type": "refresh_token",
            "refresh_token": kept.refresh_token,
            "scope": "openid profile email",
        }
        sent = json.dumps(asked).encode()
        upstream = await self._upstreams.connect(self._server)
        try:
            async with asyncio.timeout(REFRESH_TIMEOUT):
                fields = [
                    ("Host", self._server.authority),
                    ("Content-Type", "application/json"),
                    ("Accept", "application/json"),
                    ("Accept-Encoding", "identity"),
                    ("User-Agent", "freehold"),
                    ("Connection", "close"),
                ]
                exchange = HttpExchange(upstream.stream, upstream.reader, "POST", TOKEN_PATH, fields, len(sent))
                await exchange.send_whole(sent)
                response = await exchange.read_head()
                body = b""
                async for piece in exchange.read_body():
                    body += piece
                    if len(body) > MAX_BYTES:
                        break
        except (OSError, TimeoutError, FreeholdError) as error:
            raise _no_answer(provider, f"{self._server.host} does not answer") from error
        finally:
            await upstream.stream.close()
        if response.status == 429 or response.status >= 500:
            raise _no_answer(provider, f"{self._server.host} answered with status {response.status}")
        if response.status != 200:
            raise FreeholdError(
                "models.signed-out",
                f"The sign-in of {provider.name} has ended: {self._server.host} answered with status {response.status}",
                hint="Run codex login on your own machine, then: freehold models add codex",
            )
        return _read_renewed(body, kept)


def _no_answer(provider: Provider, why: str) -> FreeholdError:
    return FreeholdError(
        "models.unreachable",
        f"The sign-in of {provider.name} cannot be renewed: {why}",
        hint="Check the network of this machine, and try again",
    )


def _read_renewed(body: bytes, kept: CodexSignIn) -> CodexSignIn:
    try:
        content: Any = json.loads(body)
    except ValueError:
        content = {}
    tokens = content if isinstance(content, dict) else {}
    return read_sign_in(
        json.dumps(
            {
                "access_token": tokens.get("access_token"),
                "refresh_token": tokens.get("refresh_token") or kept.refresh_token,
            }
        )
    )
