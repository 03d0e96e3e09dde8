"""E-mail against a real SMTP server: encrypted, with a password, and paired by a code that only its reader knows."""

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.channels.conftest import ChannelGateway
from tests.support.condition import until
from tests.support.mail_server import PASSWORD, USER, MailServer, make_certificate, running_mail_server

from freehold.channels import mail
from freehold.channels.contract import ChannelAway, OutgoingMessage, OwnerAddress
from freehold.channels.kinds import EmailSettings
from freehold.channels.mail import MailChannel
from freehold.observe.secrets import Secret

pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
"""The test's server does not count a connection that is encrypted from its begin."""
ME = OwnerAddress("me@example.test", "me@example.test")
MESSAGE = OutgoingMessage("key", "Subject", "Text", "http://freehold.localhost:3000")


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    path, context = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    return context


@pytest.fixture(params=["tls", "starttls"])
def server(request: pytest.FixtureRequest, certificate: Any) -> Iterator[tuple[str, MailServer]]:
    with running_mail_server(certificate, starttls=request.param == "starttls") as running:
        yield request.param, running


def settings(port: int, security: str = "tls", **more: Any) -> dict[str, Any]:
    return {
        "server": "localhost",
        "port": port,
        "security": security,
        "user": USER,
        "sender": "fh@example.test",
        **more,
    }


async def test_a_mail_is_sent_encrypted_to_an_address_that_was_proven(
    gateway: ChannelGateway, server: tuple[str, MailServer]
) -> None:
    security, running = server
    body = {"kind": "email", "settings": settings(running.port, security), "secret": PASSWORD}
    await gateway.post("", body, status=201)
    offer = await gateway.post("/email/pair", {"address": "me@example.test"})
    assert offer["code"] is None
    (first,) = running.mails
    code = re.search(r"[A-Z0-9]{5}-[A-Z0-9]{5}", first["Subject"])
    assert code is not None
    await gateway.post("/email/confirm", {"code": "WRONG-CODE2"}, status=400)
    assert (await gateway.post("/email/confirm", {"code": code[0]}))["owner"] == "me@example.test"
    await gateway.prefer("email", batch=0)
    session = await gateway.finish_turn("It is done.", title="A long\u202e job")
    await until(lambda: len(running.mails) == 2)
    sent = running.mails[1]
    assert sent["Subject"] == "Finished: A long⟨U+202E⟩ job"
    assert sent["To"] == "me@example.test"
    assert sent["Auto-Submitted"] == "auto-generated"
    assert f"/sessions?id={session}" in sent.get_content()


async def test_an_address_that_the_server_does_not_take_is_said_in_health_until_it_does(
    gateway: ChannelGateway, server: tuple[str, MailServer]
) -> None:
    security, running = server
    body = {"kind": "email", "settings": settings(running.port, security), "secret": PASSWORD}
    await gateway.post("", body, status=201)
    await gateway.post("/email/pair", {"address": "me@example.test"})
    code = re.search(r"[A-Z0-9]{5}-[A-Z0-9]{5}", running.mails[0]["Subject"])
    assert code is not None
    await gateway.post("/email/confirm", {"code": code[0]})
    running.refusal = "550 no such mailbox"
    await gateway.post("/email/test", status=503)
    assert await gateway.read_health() == "degraded False email: a message was refused: the server answers 550"
    running.refusal = None
    await gateway.post("/email/test")
    assert (await gateway.read_health()).startswith("ok")


async def test_a_repeated_mail_has_the_same_id(certificate: Any) -> None:
    with running_mail_server(certificate, starttls=False) as running:
        channel = MailChannel(EmailSettings(**settings(running.port)), lambda: Secret(PASSWORD))
        first, second = [await channel.send(MESSAGE, ME) for _ in range(2)]
        assert first == second
        assert [one["Message-ID"] for one in running.mails] == [first, first]


async def test_a_server_with_a_certificate_of_nobody_gets_neither_mail_nor_password(tmp_path: Path) -> None:
    _, context = make_certificate(tmp_path)
    with running_mail_server(context, starttls=False) as running:
        channel = MailChannel(EmailSettings(**settings(running.port)), lambda: Secret(PASSWORD))
        with pytest.raises(ChannelAway, match="certificate"):
            await channel.send(MESSAGE, ME)
        assert running.mails == []


async def test_a_wrong_password_is_told_without_it(certificate: Any) -> None:
    with running_mail_server(certificate, starttls=True) as running:
        channel = MailChannel(EmailSettings(**settings(running.port, "starttls")), lambda: Secret("wrong-password"))
        with pytest.raises(ChannelAway) as caught:
            await channel.check()
        assert "user and password" in str(caught.value)
        assert "wrong-password" not in str(caught.value)


@pytest.mark.parametrize("how", ["hangs", "never stops talking"])
async def test_a_server_that_hangs_or_talks_without_end_costs_little(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail, "DEADLINE", 0.5 if how == "hangs" else 30.0)
    with _lying_server(b"" if how == "hangs" else b"220-word\r\n" * 1000) as port:
        given = {"server": "127.0.0.1", "port": port, "security": "none", "sender": "fh@example.test"}
        channel = MailChannel(EmailSettings.model_validate(given), lambda: Secret("x"))
        with pytest.raises(ChannelAway):
            await channel.send(MESSAGE, ME)


@contextlib.contextmanager
def _lying_server(words: bytes) -> Iterator[int]:
    """Says the words again and again, as long as anybody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def talk() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    while words:
                        connection.sendall(words)
                    connection.recv(1)

        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(30)
        assert not thread.is_alive(), "the connection was not closed"


def test_a_mail_server_elsewhere_is_used_with_tls_only() -> None:
    with pytest.raises(ValueError, match="this machine"):
        EmailSettings(server="smtp.example.com", security="none", sender="fh@example.test")
