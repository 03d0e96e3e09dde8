"""Our own certificate authority: a public key in, a certificate of a day at most out."""

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
from freehold.ssh.connecting import PRINCIPAL
from freehold.ssh.credentials import LONGEST_LIFE
from freehold.ssh.keys import authority_path, read_private

# A client whose clock is a little behind must not find its certificate not yet valid.
LEEWAY = 60
SMALLEST_RSA = 3072

PublicKey = ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey
PairKind = Literal["ed25519", "rsa"]


@dataclass(frozen=True)
class Certificate:
    """A signed certificate and what is written in it."""

    text: str
    serial: int
    key_id: str
    public_key: str
    valid_after: int
    valid_before: int


@dataclass(frozen=True)
class Pair:
    """A key pair made here for a client that cannot make its own. The private half is never stored."""

    private_key: str
    public_key: str


class Authority:
    def __init__(self, home: Home) -> None:
        self._home = home

    def sign(
        self, public_key: str, *, key_id: str, lifetime: int, forwarding: bool, now: float | None = None
    ) -> Certificate:
        """Certify a public key (a line as in `id_ed25519.pub`) for the principal `agent`."""
        key = read_public_key(public_key)
        began = int(time.time() if now is None else now)
        ends = began + min(lifetime, LONGEST_LIFE)
        serial = secrets.randbits(63) | 1
        builder = (
            SSHCertificateBuilder()
            .public_key(key)
            .serial(serial)
            .type(SSHCertificateType.USER)
            .key_id(key_id.encode())
            .valid_principals([PRINCIPAL.encode()])
            .valid_after(began - LEEWAY)
            .valid_before(ends)
            .add_extension(b"permit-pty", b"")
        )
        if forwarding:
            builder = builder.add_extension(b"permit-port-forwarding", b"")
        signer = load_ssh_private_key(read_private(authority_path(self._home)), None)
        assert isinstance(signer, ed25519.Ed25519PrivateKey)  # we made it
        text = builder.sign(signer).public_bytes().decode()
        return Certificate(text, serial, key_id, show_public_key(key), began - LEEWAY, ends)


def read_public_key(line: str) -> PublicKey:
    """A key we are willing to certify: Ed25519, ECDSA on a NIST curve, or RSA that is long enough."""
    try:
        key = load_ssh_public_key(line.strip().encode())
    except (ValueError, UnsupportedAlgorithm, UnicodeEncodeError):
        raise FreeholdError(
            "ssh.bad-key",
            "That is not a public key that OpenSSH would know",
            hint="Send one line, as in ~/.ssh/id_ed25519.pub: ssh-keygen -t ed25519 makes one",
        ) from None
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < SMALLEST_RSA:
        raise FreeholdError(
            "ssh.weak-key",
            f"That RSA key has {key.key_size} bits; {SMALLEST_RSA} is the least",
            hint="ssh-keygen -t ed25519",
        )
    if not isinstance(key, ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
        raise FreeholdError(
            "ssh.weak-key",
            "Keys of that kind are not certified here",
            hint="Make an Ed25519 key: ssh-keygen -t ed25519",
        )
    return key


def show_public_key(key: PublicKey) -> str:
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def make_pair(kind: PairKind = "ed25519") -> Pair:
    """A fresh pair; RSA in the format that software of old reads."""
    if kind == "rsa":
        old = rsa.generate_private_key(65537, SMALLEST_RSA)
        private = old.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        return Pair(private.decode(), show_public_key(old.public_key()))
    new = ed25519.Ed25519PrivateKey.generate()
    private = new.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return Pair(private.decode(), show_public_key(new.public_key()))
