"""What could be connected with one press: keys in the environment, and model servers that answer on loopback.

Nothing that is found here is used until the owner connects it.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from freehold.egress.models.known_providers import KNOWN_PROVIDERS, KnownProvider
from freehold.egress.models.provider import Provider, read_provider
from freehold.egress.models.provider_check import ask_for_models
from freehold.egress.models.upstream import UpstreamPool
from freehold.errors import FreeholdError
from freehold.manifest.secret_text import looks_placeholder
from freehold.manifest.sections.models import ModelSection

PROBE_TIMEOUT = 2.0


@dataclass(frozen=True)
class FoundProvider:
    """`variable` is the environment variable that has its key; None for a server that needs none."""

    known: KnownProvider
    variable: str | None = None
    models: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        if self.variable is not None:
            return f"The environment of Freehold has a key in {self.variable}"
        count = len(self.models)
        return f"It answers at {self.known.base_url} and offers {count} model{'' if count == 1 else 's'}"


def find_environment_keys(environ: Mapping[str, str], connected: Iterable[Provider]) -> list[FoundProvider]:
    """Known providers whose key is in the environment and that are not connected. No value leaves this function."""
    addresses = {(each.url, each.auth) for each in connected}
    found = []
    for known in KNOWN_PROVIDERS:
        if _is_connected(known, addresses):
            continue
        for variable in known.variables:
            value = environ.get(variable, "").strip()
            if value and not looks_placeholder(value):
                found.append(FoundProvider(known, variable))
                break
    return found


async def find_local_servers(connected: Iterable[Provider], upstreams: UpstreamPool) -> list[FoundProvider]:
    """Model servers at their usual ports on loopback that list at least one model and are not connected."""
    addresses = {(each.url, each.auth) for each in connected}
    asked = [known for known in KNOWN_PROVIDERS if known.is_local and not _is_connected(known, addresses)]
    listed = await asyncio.gather(*(list_local_models(known, upstreams) for known in asked))
    return [FoundProvider(known, models=names) for known, names in zip(asked, listed, strict=True) if names]


async def list_local_models(known: KnownProvider, upstreams: UpstreamPool) -> tuple[str, ...]:
    """The models of a server on loopback; none when it does not answer."""
    provider = read_provider(known.name, ModelSection(kind=known.kind, base_url=known.base_url))
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            return (await ask_for_models(provider, None, upstreams)).models
    except (FreeholdError, TimeoutError):
        return ()


def _is_connected(known: KnownProvider, addresses: Collection[tuple[str, str]]) -> bool:
    return known.base_url is not None and (known.base_url, known.auth) in addresses
