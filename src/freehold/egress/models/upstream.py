"""Connections to providers: resolved once, checked, encrypted, and kept for the next request."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address

from freehold.egress.addresses import AddressCheck, Resolver, dial, resolve_by_dns, why_refused_here
from freehold.egress.models.provider import Provider
from freehold.egress.names import IPAddress
from freehold.egress.stream import PushbackReader, SocketStream
from freehold.errors import FreeholdError
from freehold.manifest.addresses import is_loopback, is_private, parse_ip
from freehold.observe.secrets import Secret

CONNECT_TIMEOUT = 15.0
IDLE_TIMEOUT = 20.0
"""Seconds that an unused connection is kept. Providers close theirs after about a minute, and a request on a closing
connection would be lost, because no request is sent twice."""
MAX_IDLE = 4
"""Unused connections of one user."""
MAX_IDLE_IN_ALL = 64


@dataclass(frozen=True)
class UpstreamUser:
    """For whom a connection was opened, and to which `Provider.place`. It is never given to another."""

    session: str
    provider: str
    key: Secret | None


@dataclass(eq=False)
class UpstreamConnection:
    """One connection to a provider. `reader` holds bytes that were read too far."""

    stream: SocketStream
    reader: PushbackReader = field(init=False)
    is_new: bool = True
    """Whether it has carried no request yet."""

    def __post_init__(self) -> None:
        self.reader = PushbackReader(self.stream)

    @property
    def is_quiet(self) -> bool:
        """Whether the provider has sent nothing that was not read, and has not closed."""
        return not self.reader.has_buffered and self.stream.is_quiet


class UpstreamPool:
    """Idle connections by user. Tests replace `resolve` and `check` to reach servers on loopback by name."""

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
        self._idle: dict[UpstreamConnection, tuple[UpstreamUser, asyncio.TimerHandle]] = {}
        """In the order of their last use."""

    async def acquire(self, user: UpstreamUser, provider: Provider) -> UpstreamConnection:
        """An idle connection of this user, or a new one. Raises `models.unreachable`."""
        for connection in reversed(self._idle_of(user)):
            self._take(connection)
            if connection.is_quiet:
                return connection
            connection.stream.abort()
        return await self.connect(provider)

    async def recheck(
        self, connection: UpstreamConnection, user: UpstreamUser, provider: Provider
    ) -> UpstreamConnection:
        """To be called right before a request is sent: another connection when the provider has said something meanwhile."""
        if connection.is_new or connection.is_quiet:
            return connection
        connection.stream.abort()
        return await self.acquire(user, provider)

    async def connect(self, provider: Provider) -> UpstreamConnection:
        """A new connection. Raises `models.unreachable`."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                return await self._connect(provider)
        except TimeoutError as error:
            raise unreachable(provider, "it did not respond in time") from error
        except ssl.SSLError as error:
            raise unreachable(provider, f"the TLS handshake failed ({error.reason})") from error
        except OSError as error:
            raise unreachable(provider, "the connection failed") from error

    def release(self, user: UpstreamUser, connection: UpstreamConnection) -> None:
        """Keeps a connection for the user's next request. Call it only after an exchange that is clean."""
        if not connection.is_quiet:
            connection.stream.abort()
            return
        connection.is_new = False
        expiry = asyncio.get_running_loop().call_later(IDLE_TIMEOUT, partial(self._drop, connection))
        self._idle[connection] = (user, expiry)
        if len(own := self._idle_of(user)) > MAX_IDLE:
            self._drop(own[0])
        elif len(self._idle) > MAX_IDLE_IN_ALL:
            self._drop(next(iter(self._idle)))

    def end_session(self, session: str) -> None:
        """Closes the idle connections of a session. Idempotent."""
        for connection, (user, _) in tuple(self._idle.items()):
            if user.session == session:
                self._drop(connection)

    def drop_idle(self) -> None:
        """Aborts all idle connections. The kill switch calls this."""
        for connection in tuple(self._idle):
            self._drop(connection)

    async def close(self) -> None:
        """Closes all idle connections. Idempotent."""
        for connection in tuple(self._idle):
            self._take(connection)
            await connection.stream.close()

    def _idle_of(self, user: UpstreamUser) -> list[UpstreamConnection]:
        return [connection for connection, (owner, _) in self._idle.items() if owner == user]

    def _take(self, connection: UpstreamConnection) -> None:
        _, expiry = self._idle.pop(connection)
        expiry.cancel()

    def _drop(self, connection: UpstreamConnection) -> None:
        self._take(connection)
        connection.stream.abort()

    async def _connect(self, provider: Provider) -> UpstreamConnection:
        addresses = await self._addresses(provider)
        try:
            stream = await dial(addresses, provider.port, timeout=CONNECT_TIMEOUT)
        except FreeholdError as error:
            raise unreachable(provider, "none of its addresses answered") from error
        if provider.scheme == "https":
            try:
                await stream.start_tls(await self._tls(), provider.host)
            except BaseException:
                await stream.close()
                raise
        return UpstreamConnection(stream)

    async def _addresses(self, provider: Provider) -> Sequence[IPAddress]:
        """The addresses of a provider. Private ones only when base_url names them."""
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
                f"its name resolves to {found[0]}, which is not public; write that address into base_url to use it",
            )
        return public

    async def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            # Reading the system's certificates takes tens of milliseconds.
            context = await asyncio.to_thread(self._make_context)
            context.set_alpn_protocols(["http/1.1"])
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            self._context = context
        return self._context


async def _resolve_near(provider: Provider) -> list[IPAddress]:
    """Resolves a name of the owner's own network, with the hosts file and mDNS."""
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
        hint=f"Check base_url of [models.{provider.name}] in freehold.toml, and try it with freehold models --test",
    )
