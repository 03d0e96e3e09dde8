"""A deployed Freehold seen from outside: one that is right, and one for each thing that can be wrong."""

import contextlib
import datetime
import http.server
import ipaddress
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from freehold.doctor.public_site import HEADERS, PublicFinding, PublicSite, examine_site, find_site
from freehold.errors import FreeholdError

HOST = "agent.example.com"
Answer = tuple[int, list[tuple[str, str]]]
Reply = Callable[[str, str, str], Answer]


def make_certificate(folder: Path, days: int) -> Path:
    """The certificate with its key in one file; it is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(tz=datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName(HOST), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=days, hours=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{days}.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path


@contextlib.contextmanager
def serve(reply: Reply, certificate: Path | None = None) -> Iterator[int]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            status, headers = reply(self.command, self.path, self.headers.get("Host", ""))
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST = handle_any

        def log_message(self, format: str, *words: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def right(method: str, path: str, host: str) -> Answer:
    if host != HOST:
        return 421, []
    return (200 if path == "/" else 401), [(name, "x") for name in HEADERS]


def redirect(method: str, path: str, host: str) -> Answer:
    return 308, [("Location", f"https://{HOST}/")]


@contextlib.contextmanager
def public_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply = right, plain: Reply = redirect, days: int = 60
) -> Iterator[PublicSite]:
    certificate = make_certificate(tmp_path, days)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serve(reply, certificate) as port, serve(plain) as http_port:
        yield PublicSite(HOST, port, http_port, "127.0.0.1", closed_ports={})


def find_wrong(site: PublicSite) -> dict[str, PublicFinding]:
    return {one.name: one for one in examine_site(site) if not one.is_right}


def test_a_right_one_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with public_site(tmp_path, monkeypatch) as site:
        assert find_wrong(site) == {}
        names = [one.name for one in examine_site(site)]
    assert names == ["certificate", "plain http", "page", "headers", "without the owner", "socket", "another name"]


def test_a_certificate_that_ends_soon_or_is_not_trusted_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with public_site(tmp_path, monkeypatch, days=3) as site:
        assert find_wrong(site)["certificate"].found.startswith("valid for 3 days")
        monkeypatch.delenv("SSL_CERT_FILE")
        (only,) = examine_site(site)
        assert "self-signed" in only.found or "verify failed" in only.found, "and nothing else was asked"


def test_each_wrong_answer_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(method: str, path: str, host: str) -> Answer:
        status, headers = right(method, path, host)
        return status, [*headers, (HEADERS[0], "again")]

    def without(method: str, path: str, host: str) -> Answer:
        return right(method, path, host)[0], []

    def open_to_all(method: str, path: str, host: str) -> Answer:
        return (200 if path == "/v1/history" else right(method, path, host)[0]), right(method, path, host)[1]

    def any_name(method: str, path: str, host: str) -> Answer:
        return right(method, path, HOST)

    def socket(method: str, path: str, host: str) -> Answer:
        return (101 if path == "/v1/socket" else right(method, path, host)[0]), right(method, path, host)[1]

    for reply, name, told in (
        (doubled, "headers", f"{HEADERS[0]} is there twice"),
        (without, "headers", "is missing"),
        (open_to_all, "without the owner", "answered: /v1/history"),
        (any_name, "another name", "status 200"),
        (socket, "socket", "status 101"),
    ):
        with public_site(tmp_path, monkeypatch, reply) as site:
            wrong = find_wrong(site)
        assert list(wrong) == [name], wrong
        assert told in wrong[name].found
    with public_site(tmp_path, monkeypatch, plain=right) as site:
        assert list(find_wrong(site)) == ["plain http"]


def test_an_open_port_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with public_site(tmp_path, monkeypatch) as site:
        wrong = find_wrong(replace(site, closed_ports={site.http_port: "the recovery page"}))
    (found,) = wrong.values()
    assert found.found == "open: the recovery page"


def test_only_an_https_address_is_looked_at() -> None:
    assert find_site("https://agent.example.com:8443/x") == PublicSite("agent.example.com", 8443)
    assert find_site("agent.example.com").port == 443
    for wrong in ("http://agent.example.com", "https://", ""):
        with pytest.raises(FreeholdError):
            find_site(wrong)
