"""Key pairs on the curve secp256k1, and signatures with them (BIP-340). The library is loaded at the first use."""

import hmac
import secrets
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from freehold.errors import FreeholdError
from freehold.mesh.nostr.bech32 import BadKeyText, decode_key, encode_key

if TYPE_CHECKING:
    import coincurve

HEX_KEY = 64


class NostrKey:
    """A secret key. It shows itself as its public key."""

    def __init__(self, secret: bytes) -> None:
        """Raises ValueError for bytes that are no key."""
        self._private: coincurve.PrivateKey = _library().PrivateKey(secret)
        self.public: str = self._private.public_key.format()[1:].hex()

    def __repr__(self) -> str:
        return f"NostrKey({show_key(self.public)})"

    def export(self) -> str:
        """The secret itself, as `nsec1…`."""
        return encode_key("nsec", self._private.secret)

    def sign(self, digest: bytes) -> str:
        return self._private.sign_schnorr(digest).hex()

    def share_with(self, public: str) -> bytes:
        """The conversation key of NIP-44: the same for both sides. Raises ValueError for a key that is no point."""
        other = _library().PublicKey(b"\x02" + bytes.fromhex(public))
        shared: bytes = other.multiply(self._private.secret).format()[1:]
        return hmac.digest(b"nip44-v2", shared, "sha256")


def make_key() -> NostrKey:
    return NostrKey(secrets.token_bytes(32))


def read_secret_key(text: str) -> NostrKey:
    """From `nsec1…` or 64 hex digits. Raises `mesh.bad-key`, which does not repeat the text."""
    try:
        return NostrKey(_read(text, "nsec"))
    except ValueError as error:
        raise FreeholdError(
            "mesh.bad-key", f"This is not a secret key: {error}", hint="It begins with nsec1 and has 63 letters"
        ) from None


def read_public_key(text: str) -> str:
    """64 hex digits, from these or from `npub1…`. Raises `mesh.bad-key`."""
    try:
        return _read(text, "npub").hex()
    except ValueError as error:
        raise FreeholdError(
            "mesh.bad-key",
            f"{text[:80]!a} is not a public key: {error}",
            hint="It begins with npub1 and has 63 letters",
        ) from None


def show_key(public: str) -> str:
    """`npub1…` of 64 hex digits."""
    return encode_key("npub", bytes.fromhex(public))


def is_hex(text: str, length: int) -> bool:
    return len(text) == length and all(letter in "0123456789abcdef" for letter in text)


def verify_signature(public: str, digest: bytes, signature: str) -> bool:
    """Never raises: what is malformed is not signed."""
    try:
        return bool(_library().PublicKeyXOnly(bytes.fromhex(public)).verify(bytes.fromhex(signature), digest))
    except ValueError:
        return False


def require_library() -> None:
    """Raises `mesh.not-installed`."""
    _library()


def _read(text: str, prefix: str) -> bytes:
    text = text.strip()
    if is_hex(text, HEX_KEY):
        return bytes.fromhex(text)
    if len(text) > 100:
        raise BadKeyText("it is too long")
    return decode_key(prefix, text)


@cache
def _library() -> Any:
    try:
        import coincurve
    except ImportError:
        raise FreeholdError(
            "mesh.not-installed",
            "The library for the keys of neighbours is not installed",
            hint=f"{sys.executable} -m pip install 'freehold[mesh]'",
        ) from None
    return coincurve
