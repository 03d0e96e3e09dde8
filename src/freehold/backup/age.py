"""The age file format (age-encryption.org/v1) with X25519 keys, so that `age -d` opens what is written here.

Written on `cryptography`, which is here anyway and four times as fast as the binding that was tried (see ADR 0080).
"""

import base64
import binascii
import hmac
import io
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from freehold.backup.bech32 import decode_bech32, encode_bech32

_VERSION = b"age-encryption.org/v1"
_STANZA = b"age-encryption.org/v1/X25519"
_CHUNK = 64 << 10
_TAG = 16
_FILE_KEY = 16
_MAX_HEADER = 16 << 10
_SECRET_PREFIX = "age-secret-key-"  # noqa: S105 - how every key begins
_ZERO_NONCE = bytes(12)


class CannotDecrypt(Exception):
    """The file is not for this key, is no age file, or was changed."""


class AgeRecipient:
    """The public half of a key: files can be encrypted for it."""

    def __init__(self, public: bytes) -> None:
        self.public = public

    @classmethod
    def parse(cls, text: str) -> "AgeRecipient":
        """`age1…`. Raises ValueError."""
        prefix, public = decode_bech32(text.strip())
        if prefix != "age" or len(public) != 32:
            raise ValueError("it is no age recipient")
        return cls(public)

    def __str__(self) -> str:
        return encode_bech32("age", self.public)

    def wrap(self, file_key: bytes) -> bytes:
        """The stanza of the header that gives the file's key to the holder of this key."""
        ephemeral = X25519PrivateKey.generate()
        share = _public_bytes(ephemeral)
        shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(self.public))
        body = ChaCha20Poly1305(_derive(shared, share + self.public, _STANZA)).encrypt(_ZERO_NONCE, file_key, None)
        return b"-> X25519 %b\n%b\n" % (_encode(share), _encode(body))


class AgeIdentity:
    """A secret key: files can be decrypted with it."""

    def __init__(self, secret: bytes) -> None:
        self._private = X25519PrivateKey.from_private_bytes(secret)
        self.recipient = AgeRecipient(_public_bytes(self._private))

    @classmethod
    def generate(cls) -> "AgeIdentity":
        return cls(os.urandom(32))

    @classmethod
    def parse(cls, text: str) -> "AgeIdentity":
        """`AGE-SECRET-KEY-1…`; blanks within it are ignored, as a person may type them. Raises ValueError."""
        prefix, secret = decode_bech32("".join(text.split()))
        if prefix != _SECRET_PREFIX or len(secret) != 32:
            raise ValueError("it is no age key")
        return cls(secret)

    def reveal(self) -> str:
        return encode_bech32(_SECRET_PREFIX, self.secret_bytes()).upper()

    def secret_bytes(self) -> bytes:
        return self._private.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())

    def unwrap(self, share: bytes, body: bytes) -> bytes | None:
        """The file's key, or None when the stanza is for another key."""
        try:
            shared = self._private.exchange(X25519PublicKey.from_public_bytes(share))
            key = _derive(shared, share + self.recipient.public, _STANZA)
            return ChaCha20Poly1305(key).decrypt(_ZERO_NONCE, body, None)
        except (InvalidTag, ValueError):
            return None


def encrypt(data: bytes | memoryview, recipients: Sequence[AgeRecipient]) -> bytes:
    file_key = os.urandom(_FILE_KEY)
    head = _VERSION + b"\n" + b"".join(recipient.wrap(file_key) for recipient in recipients) + b"---"
    mac = hmac.digest(_derive(file_key, b"", b"header"), head, "sha256")
    nonce = os.urandom(16)
    cipher = ChaCha20Poly1305(_derive(file_key, nonce, b"payload"))
    sealed = io.BytesIO()  # what it holds is not copied at the end
    sealed.write(b"".join((head, b" ", _encode(mac), b"\n", nonce)))
    view = memoryview(data)
    count = max(1, -(-len(view) // _CHUNK))
    for number in range(count):
        piece = view[number * _CHUNK : (number + 1) * _CHUNK]
        sealed.write(cipher.encrypt(_chunk_nonce(number, last=number == count - 1), piece, None))
    return sealed.getvalue()


def decrypt(sealed: bytes, identity: AgeIdentity) -> bytes:
    """Raises CannotDecrypt, also when anything was cut off or added."""
    stanzas, head, mac, payload = _read_header(sealed)
    file_key = next((key for share, body in stanzas if (key := identity.unwrap(share, body)) is not None), None)
    if file_key is None or len(file_key) != _FILE_KEY:
        raise CannotDecrypt("it was encrypted for another key")
    if not hmac.compare_digest(hmac.digest(_derive(file_key, b"", b"header"), head, "sha256"), mac):
        raise CannotDecrypt("its header was changed")
    if len(payload) < 16 + _TAG:
        raise CannotDecrypt("it was cut off")
    cipher = ChaCha20Poly1305(_derive(file_key, bytes(payload[:16]), b"payload"))
    body = payload[16:]
    size = _CHUNK + _TAG
    count = -(-len(body) // size)
    parts = []
    try:
        for number in range(count):
            nonce = _chunk_nonce(number, last=number == count - 1)
            parts.append(cipher.decrypt(nonce, body[number * size : (number + 1) * size], None))
    except (InvalidTag, ValueError):
        raise CannotDecrypt("it was cut off or changed") from None
    if count > 1 and not parts[-1]:
        raise CannotDecrypt("it ends with an empty part")
    return b"".join(parts)


def _read_header(sealed: bytes) -> tuple[list[tuple[bytes, bytes]], bytes, bytes, memoryview]:
    """The X25519 stanzas, the authenticated part of the header, its MAC, and the payload."""
    end = sealed.find(b"\n---", 0, _MAX_HEADER)
    stop = sealed.find(b"\n", end + 1, end + 128)
    if end < 0 or stop < 0 or not sealed.startswith(_VERSION + b"\n"):
        raise CannotDecrypt("it is no age file")
    head, tail = sealed[: end + 4], sealed[end + 4 : stop]
    lines = sealed[len(_VERSION) + 1 : end].split(b"\n")
    stanzas = []
    try:
        mac = _decode(tail[1:]) if tail.startswith(b" ") else b""
        for number, line in enumerate(lines[:-1]):
            words = line.split(b" ")
            if words[:2] == [b"->", b"X25519"] and len(words) == 3:
                share, body = _decode(words[2]), _decode(lines[number + 1])
                if len(share) != 32 or len(body) != _FILE_KEY + _TAG:
                    raise CannotDecrypt("its header is malformed")
                stanzas.append((share, body))
    except (binascii.Error, ValueError):
        raise CannotDecrypt("its header is malformed") from None
    return stanzas, head, mac, memoryview(sealed)[stop + 1 :]


def _chunk_nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11, "big") + (b"\1" if last else b"\0")


def _derive(secret: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt, info).derive(secret)


def _encode(data: bytes) -> bytes:
    return base64.b64encode(data).rstrip(b"=")


def _decode(text: bytes) -> bytes:
    """Unpadded base64 in its one canonical spelling."""
    data = base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    if b"=" in text or _encode(data) != text:
        raise ValueError("not canonical")
    return data


def _public_bytes(private: X25519PrivateKey) -> bytes:
    return private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
