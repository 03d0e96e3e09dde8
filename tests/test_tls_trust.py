"""A server is believed when an authority of this system has signed for it, and a client of plain HTTP believes none."""

import asyncio
import ssl
from pathlib import Path

import httpx2
import pytest
from tests.support.condition import DEADLINE
from tests.support.mail_server import make_certificate

from freehold.tls_trust import trust_for, trust_system


async def ask(trust: ssl.SSLContext, server: ssl.SSLContext) -> int:
    """The status of an answer over TLS."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server)
    async with listening, httpx2.AsyncClient(verify=trust, trust_env=False, timeout=DEADLINE) as http:
        port = listening.sockets[0].getsockname()[1]
        return (await http.get(f"https://localhost:{port}/")).status_code


async def test_a_server_is_believed_only_by_an_authority_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, server = make_certificate(tmp_path)
    with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        await ask(trust_for("https://example.org"), server)
    trust_system.cache_clear()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    try:
        assert await ask(trust_for("https://example.org"), server) == 204
        with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await ask(trust_for("http://example.org"), server)
    finally:
        trust_system.cache_clear()


def test_the_authorities_are_read_once_and_not_for_plain_http() -> None:
    assert trust_for("https://one.example") is trust_for("https://two.example")
    assert trust_for("http://localhost:3000").get_ca_certs() == []
