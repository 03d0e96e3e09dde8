"""The certificate authority: signs public keys for at most a day."""

import secrets
import time
from dataclasses import dataclass
from typing import Literal

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    SSHCertificateBuilder,
    SSHCertificateType,
    load_ssh_private_key,
    load_ssh_public_key,
)

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.ssh.client_config import PRINCIPAL
from freehold.ssh.credentials import MAX_LIFETIME
from freehold.ssh.keys import authority_path, read_private

# Seconds: a certificate is also valid for a machine whose clock is a little behind.
CLOCK_LEEWAY = 60
MIN_RSA_BITS = 3072

PublicKey = ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey
KeyPairKind = Literal["ed25519", "rsa"]


@dataclass(frozen=True)
class Certificate:
    """A signed certificate and its contents."""

    text: str
    serial: int
    key_id: str
    public_key: str
    valid_after: int
    valid_before: int


@dataclass(frozen=True)
class KeyPair:
    """A key pair for a client that cannot create one. The private key is never stored."""

    private_key: str
    public_key: str


class CertificateAuthority:
    def __init__(self, home: Home) -> None:
        self._home = home

    def sign(
        self, public_key: str, *, key_id: str, lifetime: int, forwarding: bool, now: float | None = None
    ) -> Certificate:
        """Sign a public key (a line as in `id_ed25519.pub`) for the principal `agent`."""
        key = read_public_key(public_key)
        issued_at = int(time.time() if now is None else now)
        expires_at = issued_at + min(lifetime, MAX_LIFETIME)
        serial = secrets.randbits(63) | 1
        builder = (
            SSHCertificateBuilder()
            .public_key(key)
            .serial(serial)
            .type(SSHCertificateType.USER)
            .key_id(key_id.encode())
            .valid_principals([PRINCIPAL.encode()])
            .valid_after(issued_at - CLOCK_LEEWAY)
            .valid_before(expires_at)
            .add_extension(b"permit-pty", b"")
        )
        if forwarding:
            builder = builder.add_extension(b"permit-port-forwarding", b"")
        signer = load_ssh_private_key(read_private(authority_path(self._home)), None)
        assert isinstance(signer, ed25519.Ed25519PrivateKey)  # `ensure_keys` made it
        text = builder.sign(signer).public_bytes().decode()
        return Certificate(text, serial, key_id, format_public_key(key), issued_at - CLOCK_LEEWAY, expires_at)


def read_public_key(line: str) -> PublicKey:
    """Read a key that may be signed: Ed25519, ECDSA on a NIST curve, or RSA with enough bits."""
    try:
        key = load_ssh_public_key(line.strip().encode())
    except (ValueError, UnsupportedAlgorithm, UnicodeEncodeError):
        raise FreeholdError(
            "ssh.bad-key",
            "This is not a public key in the format of OpenSSH",
            hint="Send one line as in ~/.ssh/id_ed25519.pub; ssh-keygen -t ed25519 creates a key",
        ) from None
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < MIN_RSA_BITS:
        raise FreeholdError(
            "ssh.weak-key",
            f"The RSA key has {key.key_size} bits; at least {MIN_RSA_BITS} are required",
            hint="Create an Ed25519 key: ssh-keygen -t ed25519",
        )
    if not isinstance(key, ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
        raise FreeholdError(
            "ssh.weak-key",
            "Keys of this type are not supported",
            hint="Create an Ed25519 key: ssh-keygen -t ed25519",
        )
    return key


def format_public_key(key: PublicKey) -> str:
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def make_key_pair(kind: KeyPairKind = "ed25519") -> KeyPair:
    """A new key pair. RSA is written in PEM, the format that old clients read."""
    if kind == "rsa":
        old = rsa.generate_private_key(65537, MIN_RSA_BITS)
        private = old.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        return KeyPair(private.decode(), format_public_key(old.public_key()))
    new = ed25519.Ed25519PrivateKey.generate()
    private = new.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return KeyPair(private.decode(), format_public_key(new.public_key()))
