"""A real SMTP server (aiosmtpd) on a loopback port, with TLS, a certificate of a test authority, and one account."""

import asyncio
import contextlib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from tests.support.condition import DEADLINE

USER, PASSWORD = "me", "the-password-of-the-mail-server"


@dataclass
class MailServer:
    """What it got. `refusal` is what it answers to a message instead of taking it."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    refusal: str | None = None

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.refusal is not None:
            return self.refusal
        content = envelope.original_content or b""
        self.mails.append(message_from_bytes(content, policy=policy.default))
        return "250 OK"


class _ClosingController(Controller):
    """Closes the connections that clients have left, which the original leaves to the garbage collection."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self._made: list[SMTP] = []
        super().__init__(*given, **more)

    def factory(self) -> SMTP:
        made: SMTP = super().factory()  # type: ignore[no-untyped-call]
        self._made.append(made)
        return made

    def close_connections(self) -> None:
        async def close() -> None:
            for one in self._made:
                for transport in (one.transport, one._original_transport):
                    if isinstance(transport, asyncio.WriteTransport):
                        transport.abort()
            for _ in range(5):  # what is aborted is closed in the next rounds of the loop
                await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(close(), self.loop).result(30)


def _authenticate(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
    known = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=known, handled=False)


def make_certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate for localhost that is its own authority: the file with it, and the context of a server."""
    from datetime import UTC, datetime, timedelta

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=10))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path, private = folder / "localhost.pem", folder / "localhost.key"
    path.write_bytes(made.public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, private)
    return path, context


@contextlib.contextmanager
def running_mail_server(context: ssl.SSLContext, *, starttls: bool) -> Iterator[MailServer]:
    """Nothing is taken without TLS and the password."""
    server = MailServer()
    given: dict[str, Any] = {"authenticator": _authenticate, "auth_required": True}
    given |= {"tls_context": context, "require_starttls": True} if starttls else {"ssl_context": context}
    if not starttls:
        given["auth_require_tls"] = False  # the whole connection is TLS, which this server does not count
    from tests.support.ports import free_ports

    (server.port,) = free_ports(1)
    controller = _ClosingController(
        server,
        hostname="127.0.0.1",
        port=server.port,
        server_hostname="localhost",
        ready_timeout=DEADLINE,
        **given,
    )
    controller.start()
    try:
        yield server
    finally:
        controller.close_connections()
        controller.stop()
