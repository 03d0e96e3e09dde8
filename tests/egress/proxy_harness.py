"""The egress proxy behind a real socket, with real servers behind fake names."""

import asyncio
import base64
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.support.condition import DEADLINE

from freehold.egress import EgressLimits, EgressService, EgressSettings, Mode
from freehold.egress.addresses import no_address, why_refused
from freehold.egress.credentials import ProxyCredentials
from freehold.egress.keyring import Keyring
from freehold.egress.names import IPAddress
from freehold.egress.stream import SocketStream
from freehold.timeline import Timeline

HERE = IPv4Address("127.0.0.1")


class FakeResolver:
    """A resolver that knows only the names it was given, and records the names it was asked for."""

    def __init__(self) -> None:
        self.known: dict[str, list[Sequence[str]]] = {}
        self.asked: list[str] = []

    def set(self, name: str, *answers: Sequence[str]) -> None:
        """Each answer is a list of addresses; the last one is repeated."""
        self.known[name] = list(answers)

    async def __call__(self, name: str) -> Sequence[IPAddress]:
        self.asked.append(name)
        answers = self.known.get(name)
        if not answers:
            raise no_address(name, "the name does not resolve")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return [ipaddress.ip_address(text) for text in answer]


def pretend_public(address: IPAddress) -> str | None:
    """Treats 127.0.0.1 and 127.77.0.0/16, where test servers listen, as public. Other addresses are checked for real."""
    if address == HERE or address in ipaddress.ip_network("127.77.0.0/16"):
        return None
    return why_refused(address)


@dataclass
class RunningProxy:
    """A running egress behind a socket, in place of the guest's port 3128."""

    egress: EgressService
    timeline: Timeline
    names: FakeResolver
    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def send(self, data: bytes) -> bytes:
        """Sends the bytes and returns all that comes back until the end."""
        reader, writer = await self.open()
        try:
            writer.write(data)
            async with asyncio.timeout(DEADLINE):
                return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            await hang_up(writer)

    def address_for(self, session: str) -> str:
        """The proxy's address with the credentials of a session, as its programs find it in their environment."""
        return f"http://{session}:{self.egress.credentials.issue(session)}@127.0.0.1:{self.port}"

    def authorization_for(self, session: str) -> str:
        """The header line with the credentials of a session."""
        encoded = base64.b64encode(f"{session}:{self.egress.credentials.issue(session)}".encode()).decode()
        return f"Proxy-Authorization: Basic {encoded}\r\n"

    async def connect(self, target: str, headers: str = "") -> tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]:
        """CONNECT, and the status line that came back."""
        reader, writer = await self.open()
        writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{headers}\r\n".encode())
        async with asyncio.timeout(DEADLINE):
            status = await reader.readline()
            if status.startswith(b"HTTP/1.1 200"):
                await reader.readuntil(b"\r\n")
        return status, reader, writer

    async def event(self, kind: str) -> dict[str, object]:
        """The first event of this kind. Waits for it."""
        async with asyncio.timeout(DEADLINE), aclosing(self.timeline.follow(0, (f"egress.{kind}",))) as events:
            async for event in events:
                return {**event.data, "who": event.who}
        raise AssertionError(kind)

    def events(self, kind: str) -> list[dict[str, object]]:
        return [{**event.data, "who": event.who} for event in self.timeline.read(kinds=(f"egress.{kind}",))]


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        await writer.wait_closed()
    except (OSError, ssl.SSLError):
        return


@asynccontextmanager
async def run_proxy(
    folder: Path,
    *,
    mode: Mode = "deny",
    allow: Sequence[str] = (),
    deny: Sequence[str] = (),
    limits: EgressLimits | None = None,
    check: Callable[[IPAddress], str | None] = pretend_public,
    names: FakeResolver | None = None,
    credentials: ProxyCredentials | None = None,
    keyring: Keyring | None = None,
) -> AsyncIterator[RunningProxy]:
    names = names or FakeResolver()
    settings = EgressSettings(mode, tuple(allow), tuple(deny))
    with Timeline(folder / "timeline.db") as timeline:
        async with EgressService(
            timeline, settings, limits=limits, resolve=names, check=check, credentials=credentials, keyring=keyring
        ) as egress:
            open_streams: set[asyncio.Task[None]] = set()

            async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = asyncio.current_task()
                assert task is not None
                open_streams.add(task)
                try:
                    await egress.handle(SocketStream(reader, writer), who="agent:test")
                finally:
                    open_streams.discard(task)

            server = await asyncio.start_server(accept, "127.0.0.1", 0)
            try:
                yield RunningProxy(egress, timeline, names, server.sockets[0].getsockname()[1])
            finally:
                server.close()
                for connection in egress.connections:
                    connection.cut("stopped")
                if open_streams:
                    await asyncio.wait(open_streams, timeout=DEADLINE)


@dataclass
class FakeServer:
    """What a test server received."""

    port: int
    heads: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connected: int = 0
    served: asyncio.Queue[int] = field(default_factory=asyncio.Queue)


Respond = Callable[[FakeServer, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def run_server(
    answering: Respond, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[FakeServer]:
    seen = FakeServer(0)
    running: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        seen.connected += 1
        try:
            await answering(seen, reader, writer)
        except (OSError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            await hang_up(writer)
            running.discard(task)
            seen.served.put_nowait(seen.connected)

    server = await asyncio.start_server(accept, host, port, ssl=tls)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
        for task in list(running):
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=DEADLINE)


def respond_once(answer: bytes) -> Respond:
    """Reads one request with its body, records it, sends the response and closes."""

    async def answering(seen: FakeServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.heads.append(head)
        lower = head.lower()
        if b"transfer-encoding: chunked" in lower:
            body = b""
            while size := int(await reader.readline(), 16):
                body += await reader.readexactly(size)
                await reader.readexactly(2)
            await reader.readexactly(2)
            seen.bodies.append(body)
        elif b"content-length:" in lower:
            length = int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
            seen.bodies.append(await reader.readexactly(length))
        writer.write(answer)
        await writer.drain()

    return answering


async def echo(_seen: FakeServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends back what it receives, and ends its half when the client has ended."""
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@dataclass(frozen=True)
class Authority:
    """A throw-away certificate authority and one server certificate."""

    ca_file: Path
    server: ssl.SSLContext
    client: ssl.SSLContext


def make_authority(folder: Path, *names: str) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a throw-away authority")])
    now = datetime.datetime.now(datetime.UTC)

    def builder(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=2))
        )

    ca = builder(name, key.public_key()).add_extension(x509.BasicConstraints(True, None), critical=True)
    certificate = ca.sign(key, hashes.SHA256())
    server_key = ec.generate_private_key(ec.SECP256R1())
    alternatives: list[x509.GeneralName] = [
        x509.IPAddress(ipaddress.ip_address(text)) if text[0].isdigit() else x509.DNSName(text) for text in names
    ]
    leaf = builder(x509.Name([]), server_key.public_key()).add_extension(
        x509.SubjectAlternativeName(alternatives), critical=True
    )
    ca_file, chain, secret = folder / "ca.pem", folder / "server.pem", folder / "server.key"
    ca_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    chain.write_bytes(leaf.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(chain, secret)
    return Authority(ca_file, server, ssl.create_default_context(cafile=str(ca_file)))
