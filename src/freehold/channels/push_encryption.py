"""Encrypts a push message for one browser (RFC 8291, RFC 8188), and signs for the push service (VAPID, RFC 8292)."""

import base64
import json
import os
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

MAX_CONTENT = 3_993
"""Bytes of the content, so that the whole fits into the 4096 bytes that every push service takes."""
_RECORD = 4_096
TOKEN_LIFETIME = 12 * 3600
Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class PushKeys:
    """The browser's public key and its secret, both as bytes."""

    p256dh: bytes
    auth: bytes


def encode_url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_url(text: str) -> bytes:
    """Raises ValueError."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def make_key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def store_key(key: Key) -> str:
    """One line, for the vault."""
    return base64.b64encode(key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())).decode()


def read_key(stored: str) -> Key:
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    key = load_der_private_key(base64.b64decode(stored), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def public_point(key: Key) -> bytes:
    """65 bytes, as a browser wants it."""
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def encrypt(content: bytes, keys: PushKeys, *, sender: Key | None = None, salt: bytes | None = None) -> bytes:
    """The body of a push. `sender` and `salt` are new for each; only a test gives them."""
    if len(content) > MAX_CONTENT:
        raise ValueError(f"{len(content)} bytes are too many for one push")
    sender = sender or make_key()
    salt = salt or os.urandom(16)
    receiver = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), keys.p256dh)
    shared = sender.exchange(ec.ECDH(), receiver)
    own = public_point(sender)
    info = b"WebPush: info\0" + keys.p256dh + own
    secret = HKDF(SHA256(), 32, keys.auth, info).derive(shared)
    cipher_key = HKDF(SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(secret)
    nonce = HKDF(SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(secret)
    header = salt + _RECORD.to_bytes(4, "big") + bytes([len(own)]) + own
    return header + AESGCM(cipher_key).encrypt(nonce, content + b"\x02", None)


def sign_for(endpoint: str, key: Key, contact: str) -> str:
    """The Authorization header for one push service."""
    parts = urlsplit(endpoint)
    claims = {
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": int(time.time()) + TOKEN_LIFETIME,
        "sub": contact,
    }
    head = encode_url(json.dumps({"typ": "JWT", "alg": "ES256"}).encode())
    signed = f"{head}.{encode_url(json.dumps(claims).encode())}"
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(SHA256())))
    signature = encode_url(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
    return f"vapid t={signed}.{signature}, k={encode_url(public_point(key))}"
