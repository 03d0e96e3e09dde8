"""From the manifest's word for a key to the key: on the host only, when a question needs it."""

import asyncio
import re
from collections.abc import Mapping

from freehold.egress.models.provider import Provider
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.manifest.secrecy import parse_reference
from freehold.observe.secrets import Secret

_FIT = re.compile(r"[!-~]+")
"""What a header can carry as a key."""

HEADERS: Mapping[str, str] = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}
"""Where a kind wants its key, when it is not `Authorization: Bearer`."""


class Keys:
    """Keys as the vault and the environment hold them now: one that was changed or removed counts at once.

    What was read from the vault is remembered for as long as the vault's file is the same, so that a question does
    not wait for the disk.
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
        mark = self._vault.mark()
        remembered = self._read.get(reference[1])
        if remembered is not None and remembered[0] == mark:
            return remembered[1]
        found = await asyncio.to_thread(self.find, provider)
        if found is not None:
            # Reading notes the use in the file, so the mark is taken after it; it changes once a minute.
            self._read[reference[1]] = (self._vault.mark(), found)
        return found

    def find(self, provider: Provider) -> Secret | None:
        """None where the provider wants no key. Blocking. Raises `models.no-key` when its key cannot be had."""
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
                provider, f"Set {provider.key} where Freehold is started, or use the vault: freehold secret set"
            )
        return value


def no_key(provider: Provider, hint: str) -> FreeholdError:
    return FreeholdError("models.no-key", f"The key of {provider.name} cannot be had", hint=hint)


def key_field(provider: Provider, key: Secret) -> tuple[str, str]:
    """The one header that carries the key to a provider of this kind."""
    header = HEADERS.get(provider.kind)
    return (header, key.reveal()) if header else ("authorization", f"Bearer {key.reveal()}")
