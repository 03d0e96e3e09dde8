"""asyncssh's server connection with our certificate check and a faster path for bulk data.

The overridden methods are private methods of asyncssh. `tests/ssh` runs each with the real OpenSSH client, so a new
version of asyncssh that changes them fails the tests.
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

from freehold.ssh.connection import SshConnection

EXPIRED_BANNER = "This certificate expired or was revoked. Get a new one: freehold ssh\r\n"
MAX_GATHERED_BYTES = 128 * 1024
HEADER = 4
TAG = 16
DATA_HEADER = 10
"""Bytes before the data of a packet: padding length, message type, channel and data length."""


class _DecryptedPacket(Encryption):
    """A cipher for one packet that was decrypted already."""

    def __init__(self, plain: bytes) -> None:
        self._plain = plain

    def decrypt_packet(self, seq: int, first: bytes, rest: bytes, header_len: int, mac: bytes) -> bytes:
        return self._plain


class SshProtocol(SSHServerConnection):
    def __init__(self, loop: asyncio.AbstractEventLoop, options: SSHServerConnectionOptions) -> None:
        super().__init__(loop, options, wait=None)
        self._gathered: list[bytes] = []
        self._gathered_size = 0
        self._decryptor: tuple[GCMEncryption, AESGCM] | None = None

    @property
    def connection(self) -> SshConnection:
        assert isinstance(self._owner, SshConnection)
        return self._owner

    # Authentication

    async def reload_config(self) -> None:
        """Nothing to do: no option depends on the user."""

    async def _validate_openssh_certificate(self, username: str, cert: SSHOpenSSHCertificate) -> SSHKey | None:
        connection = self.connection
        connection.credential = None
        key = await super()._validate_openssh_certificate(username, cert)
        if key is not None:
            connection.credential = await asyncio.to_thread(
                connection.server.credential_check.find_by_certificate, cert._serial, cert.key.get_fingerprint()
            )
            if connection.credential is not None:
                return key
        if connection.server.credential_check.is_authority(cert.signing_key.public_data):
            self.send_auth_banner(EXPIRED_BANNER)  # only to a client that has a certificate of ours
        connection.count_failed_key()
        return None

    # Sending: all packets of one iteration of the event loop in one write

    def send_packet(self, pkttype: int, *args: bytes, handler: Any = None) -> None:
        if pkttype == MSG_IGNORE and isinstance(self._send_encryption, GCMEncryption | ChachaEncryption):
            return  # asyncssh sends one before each packet, for ciphers that we do not offer
        super().send_packet(pkttype, *args, handler=handler)

    def _send(self, data: bytes) -> None:
        if not self._gathered:
            self._loop.call_soon(self._send_gathered)
        self._gathered.append(data)
        self._gathered_size += len(data)
        if self._gathered_size >= MAX_GATHERED_BYTES:
            self._send_gathered()

    def _send_gathered(self) -> None:
        if self._gathered:
            data = b"".join(self._gathered)
            self._gathered.clear()
            self._gathered_size = 0
            super()._send(data)

    def _force_close(self, exc: Exception | None) -> None:
        self._send_gathered()  # it contains the reason for the client
        super()._force_close(exc)

    # Receiving: channel data takes a short path

    def data_received(self, data: bytes, datatype: int | None = None) -> None:
        if not self._auth_complete and self._owner is not None:
            self.connection.has_sent_data = True
        super().data_received(data, datatype)

    def _recv_pkthdr(self) -> bool:
        encryption = self._recv_encryption
        if not self._auth_complete or self._decompressor or not isinstance(encryption, GCMEncryption):
            return super()._recv_pkthdr()
        buffer, at = self._inpbuf, 0
        self._inpbuf = b""  # after an error nothing more is read
        view = memoryview(buffer)
        while len(buffer) - at >= HEADER:
            length = int.from_bytes(view[at : at + HEADER], "big")
            if length > self._max_recv_pktlen:
                raise ProtocolError("Max packet size exceeded")
            end = at + HEADER + length + TAG
            if len(buffer) < end:
                break
            plain = self._decrypt(encryption, view[at + HEADER : end], buffer[at : at + HEADER])
            if not self._accept_channel_data(plain):
                self._pktlen = length
                self._packet = buffer[at : at + self._recv_blocksize]
                self._inpbuf = buffer[at + self._recv_blocksize :]
                return self._accept_other_packet(plain)
            at = end
        self._inpbuf = buffer[at:]
        return False

    def _decrypt(self, encryption: GCMEncryption, sealed: memoryview, header: bytes) -> bytes:
        cipher = encryption._cipher
        if self._decryptor is None or self._decryptor[0] is not encryption:
            self._decryptor = (encryption, AESGCM(cipher._key))
        try:
            plain = self._decryptor[1].decrypt(cipher._iv, sealed, header)
        except InvalidTag:
            raise MACError("MAC verification failed") from None
        cipher._update_iv()
        return plain

    def _accept_channel_data(self, plain: bytes) -> bool:
        """Deliver a packet with data for an open channel. False for each other packet."""
        if len(plain) < DATA_HEADER or plain[1] != MSG_CHANNEL_DATA:
            return False
        channel = self._channels.get(int.from_bytes(plain[2:6], "big"))
        data = plain[DATA_HEADER : -plain[0]]
        if (
            channel is None
            or len(data) != int.from_bytes(plain[6:DATA_HEADER], "big")
            or channel._recv_state != "open"
            or len(data) > channel._recv_window
        ):
            return False  # asyncssh reports the error
        self._auth_final = True
        self._recv_seq = (self._recv_seq + 1) & 0xFFFFFFFF
        channel._accept_data(data)
        return True

    def _accept_other_packet(self, plain: bytes) -> bool:
        """Let asyncssh handle a packet that was decrypted already."""
        encryption = self._recv_encryption
        stand_in = self._recv_encryption = _DecryptedPacket(plain)
        self._recv_handler = self._recv_packet
        try:
            return super()._recv_packet()
        finally:
            if self._recv_encryption is stand_in:
                self._recv_encryption = encryption
