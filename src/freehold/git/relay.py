"""Adds the owner's credentials to one push or pull. They are never inside the computer.

While a command runs, a port on the loopback of the computer leads to its one repository and to nothing else. The secret in
its address is known to that command only, and a push can only be the one that the owner asked for.
"""

import asyncio
import base64
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

from freehold.computer import Computer
from freehold.computer.library.tunnel import Tunnel
from freehold.egress import http1
from freehold.egress.addresses import dial, resolve_by_dns, why_refused_here
from freehold.egress.http1 import BodyEncoder, Field, HttpRequest
from freehold.egress.http_exchange import HttpExchange
from freehold.egress.names import IPAddress
from freehold.egress.stream import PushbackReader, SocketStream
from freehold.errors import FreeholdError
from freehold.git.ref_update import RefUpdate, RefUpdateCheck
from freehold.git.remote_address import RemoteAddress
from freehold.manifest.addresses import parse_ip
from freehold.observe.secrets import Secret
from freehold.tls_trust import trust_system

Service = Literal["git-upload-pack", "git-receive-pack"]
CONNECT_TIMEOUT = 15.0
SILENCE_TIMEOUT = 60.0
"""Seconds that the server may send nothing."""
USUAL_USER = "x-access-token"
"""The name that goes with a token where the secret has none. The usual hosts accept any."""
_SENT = ("accept", "content-type", "git-protocol", "content-encoding")
_RETURNED = ("content-type", "content-encoding", "cache-control")

log = logging.getLogger(__name__)


@dataclass
class GitRelay:
    """`address` is what git inside is told to use. `problem` is what the server answered in the place of git's protocol."""

    remote: RemoteAddress
    service: Service
    credentials: Secret
    update: RefUpdate | None = None
    """What a push may do; None for a pull."""
    port: int = 0
    problem: FreeholdError | None = None
    _secret: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self._secret}{self.remote.path}"

    async def serve(self, tunnel: Tunnel) -> None:
        """One request. The connection is closed then."""
        try:
            reader = PushbackReader(tunnel)
            async with asyncio.timeout(SILENCE_TIMEOUT):
                request = await http1.read_request(reader)
            await self._forward(request, reader, tunnel)
        except FreeholdError as error:
            self.problem = self.problem or error
            with suppress(FreeholdError):
                await tunnel.write(http1.encode_response(403, "Forbidden", [("Connection", "close")], 0))
        except (OSError, TimeoutError) as error:
            self.problem = self.problem or self._unreachable(str(error))
        finally:
            await tunnel.close()

    def _read_target(self, request: HttpRequest) -> str:
        """The path at the server. Raises `git.refused` for everything but the two requests of this command."""
        begin = f"/{self._secret}{self.remote.path}"
        wanted = {
            ("GET", f"{begin}/info/refs?service={self.service}"),
            ("POST", f"{begin}/{self.service}"),
        }
        if (request.method, request.target) not in wanted:
            raise FreeholdError("git.refused", "Only the repository of this command can be reached here")
        return request.target.removeprefix(f"/{self._secret}")

    async def _forward(self, request: HttpRequest, reader: PushbackReader, client: Tunnel) -> None:
        target = self._read_target(request)
        fields: list[Field] = [("Host", self._host), ("Authorization", self._authorization)]
        fields += [(name.title(), value) for name in _SENT for value in request.values(name)[:1]]
        fields += [("User-Agent", "git/freehold"), ("Accept-Encoding", "identity"), ("Connection", "close")]
        framing = request.framing()
        server = await self._connect()
        try:
            exchange = HttpExchange(
                server, PushbackReader(server), request.method, target, fields, framing if request.has_length else None
            )
            await exchange.send(self._read_body(request, reader, client))
            async with asyncio.timeout(SILENCE_TIMEOUT):
                response = await exchange.read_head()
            self._note_status(response.status)
            returned = [(name.title(), value) for name in _RETURNED for value in response.values(name)[:1]]
            head = http1.encode_response(response.status, "", [*returned, ("Connection", "close")], exchange.framing)
            await client.write(head)
            body = BodyEncoder(exchange.framing)
            async for piece in exchange.read_body():
                await client.write(body.encode(piece))
            await client.write(body.end())
        finally:
            await server.close()

    async def _read_body(self, request: HttpRequest, reader: PushbackReader, client: Tunnel) -> AsyncIterator[bytes]:
        """What git sends. A push is read as far as its list of updates before its first byte is passed on."""
        check = RefUpdateCheck(self.update) if self.update is not None and request.method == "POST" else None
        if check is not None and request.values("content-encoding"):
            raise FreeholdError("git.refused", "A push that is compressed cannot be checked")
        if "100-continue" in request.listed("expect"):
            await client.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        async for piece in http1.read_body(reader, request.framing()):
            allowed = piece if check is None else check.receive(piece)
            if allowed:
                yield allowed

    @property
    def _host(self) -> str:
        usual = 443 if self.remote.scheme == "https" else 80
        return self.remote.host if self.remote.port == usual else f"{self.remote.host}:{self.remote.port}"

    @property
    def _authorization(self) -> str:
        text = self.credentials.reveal().strip()
        pair = text if ":" in text else f"{USUAL_USER}:{text}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"

    def _note_status(self, status: int) -> None:
        if status in (401, 403):
            self.problem = FreeholdError(
                "git.no-key",
                f"{self.remote.host} refused the credentials in the secret {self.remote.secret} (status {status})",
                hint=f"Store others: freehold secret set {self.remote.secret}",
            )
        elif status >= 300:
            self.problem = FreeholdError("git.odd-answer", f"{self.remote.url} answered with status {status}")

    async def _connect(self) -> SocketStream:
        try:
            stream = await dial(await self._addresses(), self.remote.port, timeout=CONNECT_TIMEOUT)
            if self.remote.scheme == "https":
                context = await asyncio.to_thread(trust_system)
                await stream.start_tls(context, self.remote.host)
        except (OSError, FreeholdError) as error:
            raise self._unreachable(str(error)) from error
        return stream

    async def _addresses(self) -> list[IPAddress]:
        """A private address only when the owner stored credentials for the address itself."""
        literal = parse_ip(self.remote.host)
        if literal is not None:
            return [literal]
        found = [address for address in await resolve_by_dns(self.remote.host) if why_refused_here(address) is None]
        if not found:
            raise self._unreachable("its name has no public address")
        return found

    def _unreachable(self, why: str) -> FreeholdError:
        return FreeholdError("git.unreachable", f"{self.remote.host} cannot be reached: {why}")


@asynccontextmanager
async def open_relay(
    computer: Computer,
    remote: RemoteAddress,
    service: Service,
    credentials: Secret,
    update: RefUpdate | None = None,
) -> AsyncIterator[GitRelay]:
    """Until the block ends."""
    relay = GitRelay(remote, service, credentials, update)
    listener = await computer.listen(0, relay.serve)
    try:
        relay.port = listener.port
        yield relay
    finally:
        await listener.close()
