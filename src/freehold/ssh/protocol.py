"""asyncssh's connection with our own rules of who comes in, and a shorter way for bulk data.

The overridden methods are asyncssh's inner ones; `tests/ssh` drives each with the real OpenSSH client, so that a
version in which they changed does not get in unnoticed.
"""

import asyncio
from typing import Any

from asyncssh import SSHKey, SSHServerConnection, SSHServerConnectionOptions
from asyncssh.constants import MSG_CHANNEL_DATA, MSG_IGNORE
from asyncssh.encryption import ChachaEncryption, Encryption, GCMEncryption
from asyncssh.misc import MACError, ProtocolError
from asyncssh.public_key import SSHOpenSSHCertificate
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from freehold.ssh.visit import Visit

EXPIRED = "This certificate has ended or was revoked: `freehold ssh` gets a new one.\r\n"
GATHERED = 128 * 1024
HEADER = 4
TAG = 16
FIXED = 10
"""Padding length, message type, channel and length, before the data of a packet."""


class _Opened(Encryption):
    """Stands in for a cipher whose packet was decrypted already."""

    def __init__(self, plain: bytes) -> None:
        self._plain = plain

    def decrypt_packet(self, seq: int, first: bytes, rest: bytes, header_len: int, mac: bytes) -> bytes:
        return self._plain


class Line(SSHServerConnection):
    def __init__(self, loop: asyncio.AbstractEventLoop, options: SSHServerConnectionOptions) -> None:
        super().__init__(loop, options, wait=None)
        self._gathered: list[bytes] = []
        self._gathered_size = 0
        self._opener: tuple[GCMEncryption, AESGCM] | None = None

    @property
    def visit(self) -> Visit:
        assert isinstance(self._owner, Visit)
        return self._owner

    # Who comes in

    async def reload_config(self) -> None:
        """There is no configuration that depends on who comes."""

    async def _validate_openssh_certificate(self, username: str, cert: SSHOpenSSHCertificate) -> SSHKey | None:
        visit = self.visit
        visit.credential = None
        key = await super()._validate_openssh_certificate(username, cert)
        if key is not None:
            visit.credential = await asyncio.to_thread(
                visit.house.warrants.for_certificate, cert._serial, cert.key.get_fingerprint()
            )
            if visit.credential is not None:
                return key
        if visit.house.warrants.is_authority(cert.signing_key.public_data):
            self.send_auth_banner(EXPIRED)  # only to one who holds, or held, a key of ours
        visit.fail_try()
        return None

    # What goes out: all packets of one turn of the loop in one write

    def send_packet(self, pkttype: int, *args: bytes, handler: Any = None) -> None:
        if pkttype == MSG_IGNORE and isinstance(self._send_encryption, GCMEncryption | ChachaEncryption):
            return  # asyncssh sends one before each packet, for the sake of ciphers that we do not speak
        super().send_packet(pkttype, *args, handler=handler)

    def _send(self, data: bytes) -> None:
        if not self._gathered:
            self._loop.call_soon(self._send_gathered)
        self._gathered.append(data)
        self._gathered_size += len(data)
        if self._gathered_size >= GATHERED:
            self._send_gathered()

    def _send_gathered(self) -> None:
        if self._gathered:
            data = b"".join(self._gathered)
            self._gathered.clear()
            self._gathered_size = 0
            super()._send(data)

    def _force_close(self, exc: Exception | None) -> None:
        self._send_gathered()  # the reason that the other side is told is among it
        super()._force_close(exc)

    # What comes in: data of channels without a detour

    def data_received(self, data: bytes, datatype: int | None = None) -> None:
        if not self._auth_complete and self._owner is not None:
            self.visit.spoke = True
        super().data_received(data, datatype)

    def _recv_pkthdr(self) -> bool:
        encryption = self._recv_encryption
        if not self._auth_complete or self._decompressor or not isinstance(encryption, GCMEncryption):
            return super()._recv_pkthdr()
        buffer, at = self._inpbuf, 0
        self._inpbuf = b""  # after an error there is no more to read
        view = memoryview(buffer)
        while len(buffer) - at >= HEADER:
            length = int.from_bytes(view[at : at + HEADER], "big")
            if length > self._max_recv_pktlen:
                raise ProtocolError("Max packet size exceeded")
            end = at + HEADER + length + TAG
            if len(buffer) < end:
                break
            plain = self._open(encryption, view[at + HEADER : end], buffer[at : at + HEADER])
            if not self._take_data(plain):
                self._pktlen = length
                self._packet = buffer[at : at + self._recv_blocksize]
                self._inpbuf = buffer[at + self._recv_blocksize :]
                return self._take_other(plain)
            at = end
        self._inpbuf = buffer[at:]
        return False

    def _open(self, encryption: GCMEncryption, sealed: memoryview, header: bytes) -> bytes:
        cipher = encryption._cipher
        if self._opener is None or self._opener[0] is not encryption:
            self._opener = (encryption, AESGCM(cipher._key))
        try:
            plain = self._opener[1].decrypt(cipher._iv, sealed, header)
        except InvalidTag:
            raise MACError("MAC verification failed") from None
        cipher._update_iv()
        return plain

    def _take_data(self, plain: bytes) -> bool:
        """Whether it was the data of a channel that is open, and nothing out of the ordinary."""
        if len(plain) < FIXED or plain[1] != MSG_CHANNEL_DATA:
            return False
        channel = self._channels.get(int.from_bytes(plain[2:6], "big"))
        data = plain[FIXED : -plain[0]]
        if (
            channel is None
            or len(data) != int.from_bytes(plain[6:FIXED], "big")
            or channel._recv_state != "open"
            or len(data) > channel._recv_window
        ):
            return False  # asyncssh says what is wrong with it
        self._auth_final = True
        self._recv_seq = (self._recv_seq + 1) & 0xFFFFFFFF
        channel._accept_data(data)
        return True

    def _take_other(self, plain: bytes) -> bool:
        """Any other packet, the usual way."""
        encryption = self._recv_encryption
        stand_in = self._recv_encryption = _Opened(plain)
        self._recv_handler = self._recv_packet
        try:
            return super()._recv_packet()
        finally:
            if self._recv_encryption is stand_in:
                self._recv_encryption = encryption
