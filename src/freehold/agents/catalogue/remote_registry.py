"""The index of an ACP registry at an address: read through egress, when the owner asks."""

import asyncio
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from freehold.agents.catalogue.acp_registry import MAX_INDEX, RegistryAgent, read_registry
from freehold.egress.host_client import HostClient, open_host_client
from freehold.errors import FreeholdError

if TYPE_CHECKING:
    from freehold.egress.service import EgressService

FETCH_TIMEOUT = 60.0
MAX_ADDRESS = 2000


def is_address(place: str) -> bool:
    return place.startswith(("https://", "http://"))


async def fetch_registry(
    egress: "EgressService", url: str, *, who: str, trust: ssl.SSLContext | None = None
) -> list[RegistryAgent]:
    """The host of the address is allowed for this alone, unless a rule denies it.

    Raises `registry.bad-address`, `registry.not-fetched`, and what `read_registry` raises.
    """
    _check_address(url)
    async with open_host_client(
        egress, "agent-registry", url, who=who, timeout=FETCH_TIMEOUT, trust=trust or ssl.create_default_context()
    ) as client:
        data = await _fetch(client, url)
    return await asyncio.to_thread(read_registry, data)


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        valid = parts.scheme == "https" and parts.hostname and parts.username is None and parts.port != 0
    except ValueError:
        valid = False
    if not valid or len(url) > MAX_ADDRESS or not url.isprintable():
        raise FreeholdError(
            "registry.bad-address",
            f"{url[:200]!a} is not the address of an index",
            hint="It begins with https:// and has no user name: what it names is installed, so nobody may change it",
        )


async def _fetch(client: HostClient, url: str) -> bytes:
    import httpx2

    body = bytearray()
    try:
        async with client.http.stream("GET", url, headers={"accept-encoding": "identity"}) as response:
            if response.status_code != 200:
                raise _not_fetched(f"the server answered {response.status_code}")
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > MAX_INDEX:
                    break  # read_registry refuses it
    except httpx2.HTTPError as error:
        raise _not_fetched(str(error)[:300] or type(error).__name__) from error
    return bytes(body)


def _not_fetched(words: str) -> FreeholdError:
    return FreeholdError(
        "registry.not-fetched",
        f"The index cannot be fetched: {words}",
        hint="If its host is denied, freehold egress shows the rule; freehold agents registry also reads a file",
    )
