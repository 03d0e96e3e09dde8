"""Finds the key that the manifest refers to, on the host, when a request needs it."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from freehold.egress.http1 import Field
from freehold.egress.models.codex_sign_in import ACCOUNT_HEADER, read_account, read_sign_in
from freehold.egress.models.provider import Provider
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.manifest.secret_text import parse_reference
from freehold.observe.secrets import Secret

_FIT = re.compile(r"[!-~]+")
"""The characters that a key in a header can have."""

HEADERS: Mapping[str, str] = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}
"""The header for the key of a kind of provider, when it is not `Authorization: Bearer`."""

CLAUDE_BETA = "oauth-2025-04-20"
"""What Anthropic's API wants in `anthropic-beta` with the token of a subscription."""


class TokenRefresher(Protocol):
    async def refresh(self, name: str, provider: Provider) -> None:
        """Renews the sign-in that the vault keeps under this name, when it is about to expire."""
        ...


class Keys:
    """Keys from the vault and the environment. A changed or removed key takes effect at once.

    A key from the vault is cached until the vault's file changes, so that a request does not wait for the disk.
    Only with a `refresher` is the sign-in of a subscription renewed.
    """

    def __init__(self, vault: Vault, environ: Mapping[str, str], refresher: TokenRefresher | None = None) -> None:
        self._vault = vault
        self._environ = environ
        self._refresher = refresher
        self._read: dict[str, tuple[object, Secret]] = {}

    async def fetch(self, provider: Provider) -> Secret | None:
        """`find`, without blocking. Raises `models.signed-out` when a subscription has to be signed in again."""
        reference = parse_reference(provider.key or "")
        if reference is None or reference[0] == "env":
            return self.find(provider)
        if provider.auth == "codex" and self._refresher is not None:
            await self._refresher.refresh(reference[1], provider)
        version = self._vault.read_version()
        remembered = self._read.get(reference[1])
        if remembered is not None and remembered[0] == version:
            return remembered[1]
        found = await asyncio.to_thread(self.find, provider)
        if found is not None:
            # Reading records the use in the file, so the version is read after it. It changes once a minute.
            self._read[reference[1]] = (self._vault.read_version(), found)
        return found

    def find(self, provider: Provider) -> Secret | None:
        """None when the provider needs no key. Blocking. Raises `models.no-key` when its key is missing."""
        if provider.key is None:
            return None
        reference = parse_reference(provider.key)
        value: Secret | None = None
        if reference is not None and reference[0] == "env":
            value = Secret(self._environ.get(reference[1], "").strip())
        elif reference is not None:
            try:
                value = self._vault.get(reference[1])
            except FreeholdError as error:
                raise no_key(provider, error.hint) from error
        if value is not None and provider.auth == "codex":
            value = Secret(read_sign_in(value.reveal()).access_token)
        if value is None or not fits_header(value.reveal()):
            raise no_key(
                provider, f"Set {provider.key} in the environment of Freehold, or use the vault: freehold secret set"
            )
        return value


def fits_header(text: str) -> bool:
    """Whether this can be a key in a header."""
    return _FIT.fullmatch(text) is not None


def no_key(provider: Provider, hint: str) -> FreeholdError:
    return FreeholdError("models.no-key", f"The key of the model provider {provider.name} is missing", hint=hint)


def key_fields(provider: Provider, key: Secret, others: Sequence[Field]) -> list[Field]:
    """The header fields that carry the key to a provider, beside the other fields of the request."""
    if provider.auth == "codex":
        account = read_account(key.reveal())
        bearer = ("authorization", f"Bearer {key.reveal()}")
        return [bearer] if account is None else [bearer, (ACCOUNT_HEADER, account)]
    if provider.auth == "claude-code":
        stated = any(name.lower() == "anthropic-beta" and CLAUDE_BETA in value for name, value in others)
        bearer = ("authorization", f"Bearer {key.reveal()}")
        return [bearer] if stated else [bearer, ("anthropic-beta", CLAUDE_BETA)]
    header = HEADERS.get(provider.kind)
    return [(header, key.reveal()) if header else ("authorization", f"Bearer {key.reveal()}")]
