"""Encrypted text between two keys (NIP-44, version 2)."""

import base64
import binascii
import hmac
import secrets

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

MAX_TEXT = 65_535
VERSION = 2
_NONCE = 32
_MAC = 32
_MIN_PAYLOAD, _MAX_PAYLOAD = 132, 87_472


class BadCipherText(ValueError):
    """The text cannot be opened: it is damaged, forged, or for another key."""


def encrypt(conversation: bytes, text: str, nonce: bytes | None = None) -> str:
    """`conversation` is `NostrKey.share_with`. `nonce` is given by test vectors only."""
    raw, nonce = text.encode(), nonce or secrets.token_bytes(_NONCE)
    if not 1 <= len(raw) <= MAX_TEXT:
        raise ValueError(f"NIP-44 takes 1 to {MAX_TEXT} bytes")
    key, start, mac = _message_keys(conversation, nonce)
    padded = len(raw).to_bytes(2, "big") + raw + bytes(padded_length(len(raw)) - len(raw))
    sealed = _apply_cipher(key, start, padded)
    return base64.b64encode(bytes([VERSION]) + nonce + sealed + _authenticate(mac, nonce, sealed)).decode()


def decrypt(conversation: bytes, payload: str) -> str:
    """Raises `BadCipherText`."""
    if not _MIN_PAYLOAD <= len(payload) <= _MAX_PAYLOAD:
        raise BadCipherText("its length is wrong")
    try:
        raw = base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        raise BadCipherText("it is not base64") from None
    if raw[0] != VERSION:
        raise BadCipherText("it is of another version")
    nonce, sealed, code = raw[1 : 1 + _NONCE], raw[1 + _NONCE : -_MAC], raw[-_MAC:]
    key, start, mac = _message_keys(conversation, nonce)
    if not hmac.compare_digest(_authenticate(mac, nonce, sealed), code):
        raise BadCipherText("it was changed, or is for another key")
    opened = _apply_cipher(key, start, sealed)
    size = int.from_bytes(opened[:2], "big")
    if not size or len(opened) != 2 + padded_length(size) or any(opened[2 + size :]):
        raise BadCipherText("its padding is wrong")
    try:
        return opened[2 : 2 + size].decode()
    except UnicodeDecodeError:
        raise BadCipherText("it is not text") from None


def padded_length(size: int) -> int:
    if size <= 32:
        return 32
    chunk = max(32, (1 << (size - 1).bit_length()) // 8)
    return chunk * ((size - 1) // chunk + 1)


def _message_keys(conversation: bytes, nonce: bytes) -> tuple[bytes, bytes, bytes]:
    found = HKDFExpand(SHA256(), 76, nonce).derive(conversation)
    return found[:32], found[32:44], found[44:]


def _apply_cipher(key: bytes, start: bytes, data: bytes) -> bytes:
    return Cipher(algorithms.ChaCha20(key, bytes(4) + start), None).encryptor().update(data)


def _authenticate(mac: bytes, nonce: bytes, sealed: bytes) -> bytes:
    return hmac.digest(mac, nonce + sealed, "sha256")
