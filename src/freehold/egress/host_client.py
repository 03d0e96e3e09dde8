"""An HTTP client of the host that goes out as the computer does: through the rules, and only to hosts that it names."""

import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from freehold.egress.host_proxy import serve_host_proxy
from freehold.tls_trust import trust_system

if TYPE_CHECKING:
    import httpx2

    from freehold.egress.service import EgressService


class HostClient:
    """Requests through egress. Redirects are not followed."""

    def __init__(self, http: "httpx2.AsyncClient", egress: "EgressService", session: str, who: str) -> None:
        self.http = http
        self._egress = egress
        self._session = session
        self._who = who
        self._allowed: set[str] = set()

    async def allow(self, address: str) -> None:
        """Allow the host of an address for this client alone, unless a rule denies it. Idempotent."""
        parts = urlsplit(address)
        host = f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
        if host not in self._allowed:
            self._allowed.add(host)
            await self._egress.allow_session(self._session, host, "conversation", who=self._who)


@asynccontextmanager
async def open_host_client(
    egress: "EgressService",
    label: str,
    address: str,
    *,
    who: str,
    timeout: float,
    trust: ssl.SSLContext | None = None,
) -> AsyncIterator[HostClient]:
    """A client whose first host is that of `address`. `label` begins the name under which egress knows it.

    Programs of agents get nothing by it: the connection has credentials of its own, which end with it.
    """
    import httpx2  # not before it is needed: it is heavy

    session = f"{label}-{os.urandom(6).hex()}"
    try:
        async with (
            serve_host_proxy(egress, session) as proxy,
            httpx2.AsyncClient(
                proxy=proxy, trust_env=False, follow_redirects=False, timeout=timeout, verify=trust or trust_system()
            ) as http,
        ):
            client = HostClient(http, egress, session, who)
            await client.allow(address)
            yield client
    finally:
        egress.end_conversation(session)
