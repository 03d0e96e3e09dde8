"""Connections to providers: looked up once, checked, encrypted, and kept for the next question."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from freehold.egress.addresses import AddressCheck, Resolver, dial, resolve_by_dns, why_refused_here
from freehold.egress.models.provider import Provider
from freehold.egress.names import IPAddress
from freehold.egress.stream import Inlet, SocketStream
from freehold.errors import FreeholdError
from freehold.manifest.addresses import is_loopback, is_private, parse_ip

CONNECT = 15.0
IDLE = 20.0
"""How long an unused connection is kept, in seconds: providers close theirs after a minute or so, and a question that
meets a closing connection is lost, for nothing is ever sent twice."""
MAX_IDLE = 8


@dataclass(eq=False)
class Upstream:
    """One connection to a provider. `inlet` holds what was read too far."""

    stream: SocketStream
    inlet: Inlet = field(init=False)
    idle_since: float = 0.0

    def __post_init__(self) -> None:
        self.inlet = Inlet(self.stream)


class Upstreams:
    """Connections by provider. The seams are for tests, which reach servers on loopback by name."""

    def __init__(
        self,
        *,
        resolve: Resolver = resolve_by_dns,
        check: AddressCheck = why_refused_here,
        context: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        self._resolve = resolve
        self._check = check
        self._make_context = context
        self._context: ssl.SSLContext | None = None
        self._idle: dict[str, list[Upstream]] = {}

    async def take(self, provider: Provider) -> Upstream:
        """A connection that nobody uses. Raises `models.unreachable`."""
        now = asyncio.get_running_loop().time()
        idle = self._idle.get(provider.name, [])
        while idle:
            found = idle.pop()
            if not found.stream.ended and now - found.idle_since < IDLE:
                return found
            await found.stream.close()
        try:
            async with asyncio.timeout(CONNECT):
                return await self._connect(provider)
        except TimeoutError as error:
            raise unreachable(provider, "it did not answer in time") from error
        except ssl.SSLError as error:
            raise unreachable(provider, f"its certificate or encryption is not right ({error.reason})") from error
        except OSError as error:
            raise unreachable(provider, "the connection failed") from error

    async def give_back(self, provider: Provider, upstream: Upstream) -> None:
        """After a whole answer, when the provider agreed to go on."""
        idle = self._idle.setdefault(provider.name, [])
        upstream.idle_since = asyncio.get_running_loop().time()
        idle.append(upstream)
        if len(idle) > MAX_IDLE:
            await idle.pop(0).stream.close()

    async def close(self) -> None:
        """Idempotent."""
        for idle in self._idle.values():
            while idle:
                await idle.pop().stream.close()

    async def _connect(self, provider: Provider) -> Upstream:
        addresses = await self._addresses(provider)
        try:
            stream = await dial(addresses, provider.port, timeout=CONNECT)
        except FreeholdError as error:
            raise unreachable(provider, "none of its addresses answered") from error
        if provider.scheme == "https":
            try:
                await stream.start_tls(await self._tls(), provider.host)
            except BaseException:
                await stream.close()
                raise
        return Upstream(stream)

    async def _addresses(self, provider: Provider) -> Sequence[IPAddress]:
        """Private ones only where the owner's own base_url names them."""
        literal = parse_ip(provider.host)
        if literal is not None:
            return [literal]
        if is_loopback(provider.host):
            return [ip_address("127.0.0.1"), ip_address("::1")]
        if is_private(provider.host) or "." not in provider.host:
            return await _resolve_near(provider)
        try:
            found = await self._resolve(provider.host)
        except FreeholdError as error:
            raise unreachable(provider, "its name does not resolve") from error
        public = [address for address in found if self._check(address) is None]
        if not public:
            raise unreachable(
                provider,
                f"its name leads to {found[0]}, which is not public; write that address into base_url to use it",
            )
        return public

    async def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            # Reading the machine's certificates takes tens of milliseconds.
            context = await asyncio.to_thread(self._make_context)
            context.set_alpn_protocols(["http/1.1"])
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            self._context = context
        return self._context


async def _resolve_near(provider: Provider) -> list[IPAddress]:
    """A name of the owner's own network: its hosts file and mDNS count."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(provider.host, provider.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise unreachable(provider, "its name does not resolve") from error
    return [ip_address(str(place[0])) for *_rest, place in found]


def unreachable(provider: Provider, why: str) -> FreeholdError:
    return no_answer(provider, f"cannot be reached: {why}")


def no_answer(provider: Provider, what: str) -> FreeholdError:
    return FreeholdError(
        "models.unreachable",
        f"The model provider {provider.name} {what}",
        hint=f"Look at base_url of [models.{provider.name}] in freehold.toml; freehold models --test tries it, as Test in Settings does",
    )
