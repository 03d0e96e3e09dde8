"""Where machines join: the only port of the head that answers whoever connects. It answers a one-time code only."""

import asyncio
import contextlib
import hmac
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any

from freehold.errors import FreeholdError
from freehold.fleet.certificates import fingerprint, open_context, sign_request
from freehold.fleet.fleet_folder import FleetFolder, KnownNode
from freehold.fleet.join_code import LIFETIME, JoinCode
from freehold.fleet.labels import check_labels
from freehold.fleet.versions import find_skew
from freehold.fleet.wire import Stream, describe_error, encode_message, read_message
from freehold.strict_json import WrongShape, decode

REPLY_TIMEOUT = 10.0
MAX_CONNECTIONS = 8
MAX_CODES = 100
NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")


@dataclass(frozen=True)
class JoinRequest:
    """What a machine says that wants to join."""

    secret: str
    name: str
    address: str
    port: int
    certificate: str
    ray_request: str
    versions: dict[str, str]
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class JoinAnswer:
    """What it gets: the head's certificate, and what lets it take part in Ray. No key of the head, and no policy."""

    head_certificate: str
    ray_head: str
    ray_token: str
    ray_authority: str
    ray_certificate: str
    name: str
    labels: dict[str, str]
    kind: str


@dataclass(frozen=True)
class JoinGrant:
    """What the head has decided about the machine that joins with a code: its name, its kind, and labels."""

    name: str
    kind: str
    labels: dict[str, str]


class JoinDoor:
    """`on_joined` gets each node that has joined."""

    def __init__(
        self, folder: FleetFolder, address: str, port: int, ray_port: int, on_joined: Callable[[KnownNode], None]
    ) -> None:
        self._folder = folder
        self._address = address
        self._port = port
        self._ray_port = ray_port
        self._on_joined = on_joined
        self._codes: dict[str, tuple[float, JoinGrant | None]] = {}
        self._places = asyncio.Semaphore(MAX_CONNECTIONS)
        self._own = folder.read_head()

    def make_code(self, grant: JoinGrant | None = None) -> str:
        now = time.monotonic()
        self._codes = {secret: made for secret, made in self._codes.items() if made[0] > now}
        if len(self._codes) >= MAX_CODES:
            raise FreeholdError("fleet.too-many", f"{MAX_CODES} codes wait already", hint="They end after 15 minutes")
        secret = secrets.token_hex(16)
        self._codes[secret] = now + LIFETIME, grant
        return str(JoinCode(self._address, self._port, fingerprint(self._own.certificate), secret))

    def revoke_codes(self, name: str) -> None:
        """Those of a machine that the head has named."""
        self._codes = {secret: made for secret, made in self._codes.items() if made[1] is None or made[1].name != name}

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        context = open_context(self._own, server=True)
        try:
            server = await asyncio.start_server(
                self._accept, self._address, self._port, ssl=context, ssl_handshake_timeout=REPLY_TIMEOUT
            )
        except OSError as error:
            raise FreeholdError(
                "fleet.port-in-use",
                f"Cannot listen at {self._address} port {self._port}: {error.strerror}",
                hint="fleet.address must be an address of this machine, and fleet.port free",
            ) from error
        self._port = server.sockets[0].getsockname()[1]
        async with server:
            yield

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._places.locked():
                return  # a machine that is refused tries again
            async with self._places, asyncio.timeout(REPLY_TIMEOUT):
                await self._talk((reader, writer))
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass
        finally:
            writer.transport.abort()

    async def _talk(self, stream: Stream) -> None:
        reply: dict[str, Any]
        try:
            request = decode(JoinRequest, await read_message(stream[0]))
            reply = {"answer": vars(await asyncio.to_thread(self._admit, request))}
        except WrongShape as error:
            refusal = FreeholdError("fleet.bad-message", f"The request to join is not valid: {error}")
            reply = {"error": describe_error(refusal)}
        except FreeholdError as error:
            reply = {"error": describe_error(error)}
        stream[1].write(encode_message(reply))
        await stream[1].drain()
        await stream[0].read(1)

    def _admit(self, request: JoinRequest) -> JoinAnswer:
        codes = dict(self._codes)  # others are made and revoked meanwhile, in another thread
        said = request.secret.encode(errors="replace")
        found = next((one for one in codes if hmac.compare_digest(one.encode(), said)), None)
        if found is None or codes[found][0] < time.monotonic():
            raise FreeholdError(
                "fleet.code-expired", "This code is not valid, or was used", hint="freehold fleet up shows a new one"
            )
        skew = find_skew(request.versions)
        if skew:
            raise FreeholdError(
                "fleet.wrong-version",
                f"This machine cannot join: {skew}",
                hint="Install on it the version of Freehold that the head has, with the extra fleet",
            )
        grant = codes[found][1]
        if grant is not None:
            request = replace(request, name=grant.name, labels={**request.labels, **grant.labels})
        _check_request(request, self._folder.read_nodes())
        if self._codes.pop(found, None) is None:  # from here on it is used
            raise FreeholdError("fleet.code-expired", "This code was used or revoked", hint="freehold fleet up")
        authority = self._folder.read_authority()
        certificate = sign_request(authority, request.ray_request, request.name, (request.address,))
        node = KnownNode(
            request.name,
            request.address,
            request.port,
            request.certificate,
            fingerprint(certificate),
            {**request.labels},
            kind="" if grant is None else grant.kind,
        )
        self._folder.change_nodes(lambda nodes: {**nodes, node.name: node})
        self._on_joined(node)
        ray_head = f"{self._address}:{self._ray_port}"
        return JoinAnswer(
            self._own.certificate,
            ray_head,
            self._folder.read_token(),
            authority.certificate,
            certificate,
            node.name,
            node.labels,
            node.kind,
        )


def _check_request(request: JoinRequest, nodes: dict[str, KnownNode]) -> None:
    if not NAME.fullmatch(request.name):
        raise FreeholdError(
            "fleet.bad-name", f"{request.name[:60]!r} is not a name for a node", hint="freehold fleet join --name NAME"
        )
    known = nodes.get(request.name)
    if known is not None and known.certificate != request.certificate:
        raise FreeholdError(
            "fleet.name-taken",
            f"Another machine has joined as {request.name}",
            hint=f"Choose another name with --name, or remove it first: freehold fleet remove {request.name}",
        )
    try:
        address = ip_address(request.address)
    except ValueError:
        raise FreeholdError("fleet.bad-address", f"{request.address[:60]!r} is not an IP address") from None
    if address.is_unspecified or address.is_multicast:
        raise FreeholdError(
            "fleet.bad-address",
            f"{request.address} is not the address of one machine",
            hint="freehold fleet join --address with an address of it in a private network",
        )
    if not 0 < request.port < 65536:
        raise FreeholdError("fleet.bad-value", f"{request.port} is not a port")
    fingerprint(request.certificate)
    check_labels(request.labels)
