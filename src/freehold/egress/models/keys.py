"""Finds the key that the manifest refers to, on the host, when a request needs it."""

import asyncio
import re
from collections.abc import Mapping

from freehold.egress.models.provider import Provider
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.manifest.secret_text import parse_reference
from freehold.observe.secrets import Secret

_FIT = re.compile(r"[!-~]+")
"""The characters that a key in a header can have."""

HEADERS: Mapping[str, str] = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}
"""The header for the key of a kind of provider, when it is not `Authorization: Bearer`."""


class Keys:
    """Keys from the vault and the environment. A changed or removed key takes effect at once.

    A key from the vault is cached until the vault's file changes, so that a request does not wait for the disk.
    """

    def __init__(self, vault: Vault, environ: Mapping[str, str]) -> None:
        self._vault = vault
        self._environ = environ
        self._read: dict[str, tuple[object, Secret]] = {}

    async def fetch(self, provider: Provider) -> Secret | None:
        """`find`, without blocking."""
        reference = parse_reference(provider.key or "")
        if reference is None or reference[0] == "env":
            return self.find(provider)
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
        if value is None or not _FIT.fullmatch(value.reveal()):
            raise no_key(
                provider, f"Set {provider.key} in the environment of Freehold, or use the vault: freehold secret set"
            )
        return value


def no_key(provider: Provider, hint: str) -> FreeholdError:
    return FreeholdError("models.no-key", f"The key of the model provider {provider.name} is missing", hint=hint)


def key_field(provider: Provider, key: Secret) -> tuple[str, str]:
    """The one header that carries the key to a provider of this kind."""
    header = HEADERS.get(provider.kind)
    return (header, key.reveal()) if header else ("authorization", f"Bearer {key.reveal()}")
