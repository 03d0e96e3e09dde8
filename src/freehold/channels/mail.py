"""E-mail to the owner, by SMTP with TLS. Nothing is received."""

import asyncio
import contextlib
import io
import smtplib
import socket
import ssl
import threading
from email.message import EmailMessage
from email.policy import SMTP
from hashlib import sha256
from typing import Any, ClassVar

from freehold.channels.contract import (
    ChannelAway,
    ChannelKind,
    ChannelRefused,
    IncomingAttachment,
    IncomingBatch,
    OutgoingMessage,
    OwnerAddress,
    PairingOffer,
)
from freehold.channels.kinds import EmailSettings, FindSecret, check_mail_address, max_text
from freehold.errors import FreeholdError
from freehold.observe.secrets import Secret

TIMEOUT = 20.0
"""Seconds for one word of the server."""
DEADLINE = 60.0
"""Seconds for all of one message."""
MAX_REPLIES = 256 * 1024
"""Bytes that a server may say in one connection. The library itself has no limit."""
_TEMPORARY = range(400, 500)


class _BoundedReplies(io.RawIOBase):
    """What the server says, until it is too much."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._left = MAX_REPLIES

    def readline(self, size: int | None = -1, /) -> bytes:
        line: bytes = self._inner.readline(size if size is not None else -1)
        self._left -= len(line)
        if self._left < 0:
            raise OSError("the server says too much")
        return line

    def close(self) -> None:
        self._inner.close()
        super().close()


class _Smtp(smtplib.SMTP):
    def getreply(self) -> tuple[int, bytes]:
        # The library makes the file by itself when there is none, also again after STARTTLS.
        if self.file is None and self.sock is not None:
            self.file = _BoundedReplies(self.sock.makefile("rb"))
        return super().getreply()


class _SmtpOverTls(_Smtp, smtplib.SMTP_SSL):
    pass


class MailChannel:
    kind: ClassVar[ChannelKind] = "email"
    receives: ClassVar[bool] = False
    max_text: ClassVar[int] = max_text("email")

    def __init__(self, settings: EmailSettings, secret: FindSecret) -> None:
        self._settings = settings
        self._secret = secret

    async def check(self) -> str:
        await self._in_thread(lambda smtp: None)
        return self._settings.sender

    async def offer_pairing(self, code: str, address: str | None) -> PairingOffer:
        try:
            to = check_mail_address(address or "")
        except ValueError:
            raise FreeholdError(
                "channels.bad-address", "E-mail needs the address at which you are reached", hint="you@example.com"
            ) from None
        owner = OwnerAddress(to, to)
        text = "Type this code in the control center to be told of news at this address. It is good for ten minutes."
        await self._deliver(OutgoingMessage(f"pair:{code}", f"Your code is {code}", text, ""), owner)
        return PairingOffer(f"A code was sent to {to}. Type it here", expected=owner, typed_here=True)

    async def send(self, message: OutgoingMessage, owner: OwnerAddress) -> str | None:
        return await self._deliver(message, owner)

    async def receive(self, cursor: str | None) -> IncomingBatch:
        raise ChannelAway("e-mail is not received")

    async def fetch(self, attachment: IncomingAttachment, max_bytes: int) -> bytes:
        raise ChannelRefused("e-mail is not received")

    async def close(self) -> None:
        """No connection stays open."""

    async def _deliver(self, message: OutgoingMessage, owner: OwnerAddress) -> str:
        mail = EmailMessage(policy=SMTP)
        mail["Subject"] = " ".join(message.subject.split())[:200]
        mail["From"] = self._settings.sender
        mail["To"] = owner.sender
        # Always the same for one message: mail programs show a repeated one once.
        domain = self._settings.sender.rpartition("@")[2]
        mail["Message-ID"] = f"<{sha256(message.key.encode()).hexdigest()[:32]}@{domain}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(f"{message.text}\n\n{message.link}\n".lstrip())
        content = mail.as_bytes()

        def deliver(smtp: smtplib.SMTP) -> None:
            smtp.sendmail(self._settings.sender, [owner.sender], content)

        await self._in_thread(deliver)
        return str(mail["Message-ID"])

    async def _in_thread(self, work: Any) -> None:
        secret = await asyncio.to_thread(self._secret) if self._settings.user else None
        talk = _Conversation(self._settings, secret)
        running = asyncio.ensure_future(asyncio.to_thread(talk.run, work))
        try:
            async with asyncio.timeout(DEADLINE):
                await asyncio.shield(running)
        except TimeoutError:
            raise ChannelAway("the server takes too long") from None
        except (smtplib.SMTPRecipientsRefused, smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
            codes = (
                [code for code, _ in error.recipients.values()] if hasattr(error, "recipients") else [error.smtp_code]
            )
            words = f"the server answers {codes[0]}"
            if codes[0] in _TEMPORARY:
                raise ChannelAway(words) from None
            raise ChannelRefused(words) from None
        except (smtplib.SMTPException, OSError, ssl.SSLError, UnicodeError, ValueError) as error:
            raise ChannelAway(_describe(error)) from None
        finally:
            talk.hang_up()
            if not running.done():
                # The thread ends when its socket is shut. Nobody needs its outcome.
                running.add_done_callback(lambda done: done.cancelled() or done.exception())


class _Conversation:
    """One connection in a thread, that another thread can end."""

    def __init__(self, settings: EmailSettings, secret: Secret | None) -> None:
        self._settings = settings
        self._secret = secret
        self._smtp: smtplib.SMTP | None = None
        self._ended = False
        self._lock = threading.Lock()

    def run(self, work: Any) -> None:
        context = ssl.create_default_context()
        settings = self._settings
        smtp: smtplib.SMTP = (
            _SmtpOverTls(timeout=TIMEOUT, context=context) if settings.security == "tls" else _Smtp(timeout=TIMEOUT)
        )
        with self._lock:
            if self._ended:
                return
            self._smtp = smtp
        try:
            smtp._host = settings.server  # type: ignore[attr-defined]  # the name that TLS checks
            code, words = smtp.connect(settings.server, settings.port)
            if code != 220:
                raise smtplib.SMTPConnectError(code, words)
            if settings.security == "starttls":
                smtp.starttls(context=context)
            if self._secret is not None:
                smtp.login(settings.user, self._secret.reveal())
            work(smtp)
            with contextlib.suppress(smtplib.SMTPException, OSError):
                smtp.quit()
        finally:
            smtp.close()

    def hang_up(self) -> None:
        """Idempotent."""
        with self._lock:
            self._ended = True
            sock = self._smtp.sock if self._smtp is not None else None
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def _describe(error: Exception) -> str:
    """Without the server's own words: after a login they could repeat the password."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return "the server does not accept the user and password"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "the certificate of the server is not valid"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"the server answers {error.smtp_code}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return f"no connection ({type(error).__name__})"
