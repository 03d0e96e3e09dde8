"""A key is sent only to the host that the owner named, with a valid certificate, at a public address or one named in base_url."""

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.egress.models.gateway_harness import KEY, run_gateway

from freehold.egress.models.upstream import UpstreamPool
from freehold.egress.names import IPAddress
from freehold.manifest.sections.models import ModelSection

LOOPBACK: Sequence[IPAddress] = [ipaddress.ip_address("127.0.0.1")]


def certificate(folder: Path, name: str) -> Path:
    """A self-signed certificate and its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    path.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + made.public_bytes(pem))
    return path


@asynccontextmanager
async def encrypted_provider(chain: Path, seen: list[bytes]) -> AsyncIterator[int]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(chain)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def to_loopback(_name: str) -> Sequence[IPAddress]:
    return LOOPBACK


def anywhere(_address: IPAddress) -> str | None:
    return None


async def ask_through(folder: Path, url: str, upstreams: UpstreamPool) -> tuple[int, str]:
    models = {"openai": ModelSection(kind="openai-compatible", base_url=url, key="secret:real")}
    async with run_gateway(folder, models=models, upstreams=upstreams) as gateway:
        answer = await gateway.ask()
        return answer.status_code, answer.text


async def test_the_key_goes_to_a_server_with_a_valid_certificate(tmp_path: Path) -> None:
    chain, seen = certificate(tmp_path, "llm.example.org"), []  # type: tuple[Path, list[bytes]]
    upstreams = UpstreamPool(
        resolve=to_loopback, check=anywhere, context=lambda: ssl.create_default_context(cafile=str(chain))
    )
    async with encrypted_provider(chain, seen) as port:
        status, _text = await ask_through(tmp_path, f"https://llm.example.org:{port}/v1", upstreams)
    assert status == 200
    assert KEY.encode() in seen[0]
    assert f"Host: llm.example.org:{port}".encode() in seen[0]


@pytest.mark.parametrize("trusted", [False, True])
async def test_the_key_goes_nowhere_without_a_valid_certificate(trusted: bool, tmp_path: Path) -> None:
    """An unknown issuer, or a known one for another name."""
    chain, seen = certificate(tmp_path, "other.example.org"), []  # type: tuple[Path, list[bytes]]
    context = (lambda: ssl.create_default_context(cafile=str(chain))) if trusted else ssl.create_default_context
    upstreams = UpstreamPool(resolve=to_loopback, check=anywhere, context=context)
    async with encrypted_provider(chain, seen) as port:
        status, text = await ask_through(tmp_path, f"https://llm.example.org:{port}/v1", upstreams)
    assert status == 502
    assert "TLS handshake failed" in text
    assert not seen


async def test_a_public_name_with_a_private_address_is_refused(tmp_path: Path) -> None:
    """A private address is used only when base_url names it, not when DNS returns it."""
    reached = asyncio.Event()

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        status, text = await ask_through(
            tmp_path, f"http://llm.example.org:{port}/v1", UpstreamPool(resolve=to_loopback)
        )
    assert status == 502
    assert "not public" in text
    assert not reached.is_set()


async def test_localhost_in_base_url_is_allowed(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        for host in ("localhost", "127.0.0.1"):
            status, _ = await ask_through(tmp_path, f"http://{host}:{port}/v1", UpstreamPool())
            assert status == 200


async def test_a_missing_key_says_how_to_set_it_and_sends_nothing(tmp_path: Path) -> None:
    models = {"openai": ModelSection(kind="openai-compatible", base_url="http://127.0.0.1:9/v1", key="secret:nothing")}
    async with run_gateway(tmp_path, models=models) as gateway:
        answer = await gateway.ask()
        assert answer.status_code == 503
        assert "freehold secret set nothing" in answer.text
