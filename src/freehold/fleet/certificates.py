"""Keys and certificates of a fleet.

Head and node know each other's certificate since the node joined, and accept no other: no authority is involved. Ray
has keys of its own with an authority of its own, because Ray is not trusted with the links.
"""

import contextlib
import hashlib
import ipaddress
import os
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from freehold.errors import FreeholdError

LIFETIME = timedelta(days=3650)
_PEM = serialization.Encoding.PEM


@dataclass(frozen=True)
class FleetKey:
    """Both as PEM. The key never leaves the machine that made it."""

    certificate: str
    key: str


def make_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def make_own_pair(name: str) -> FleetKey:
    """A certificate that nobody else vouches for: the other side is told it."""
    key = make_key()
    return FleetKey(_sign(key.public_key(), name, key, name, addresses=(), is_authority=False), write_key(key))


def make_authority(name: str) -> FleetKey:
    key = make_key()
    return FleetKey(_sign(key.public_key(), name, key, name, addresses=(), is_authority=True), write_key(key))


def make_request(key: ec.EllipticCurvePrivateKey) -> str:
    """Asks an authority for a certificate. It says nothing but the public key."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "freehold node")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return request.public_bytes(_PEM).decode()


def sign_request(authority: FleetKey, request: str, name: str, addresses: tuple[str, ...]) -> str:
    """The certificate for the key of a request. Name and addresses are ours: those in the request are ignored."""
    try:
        asked = x509.load_pem_x509_csr(request.encode())
        public = asked.public_key()
    except ValueError as error:
        raise FreeholdError("fleet.bad-request", "The node's request for a certificate is not valid") from error
    if not asked.is_signature_valid or not isinstance(public, ec.EllipticCurvePublicKey):
        raise FreeholdError("fleet.bad-request", "The node's request is not signed with its key, or of another kind")
    key = serialization.load_pem_private_key(authority.key.encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode()).subject
    return _sign(public, name, key, issuer, addresses=addresses, is_authority=False)


def write_key(key: ec.EllipticCurvePrivateKey) -> str:
    plain = serialization.NoEncryption()
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, plain).decode()


def fingerprint(certificate: str) -> str:
    """32 hexadecimal digits: enough that nobody makes another certificate with the same."""
    try:
        found = x509.load_pem_x509_certificate(certificate.encode())
    except ValueError as error:
        raise FreeholdError("fleet.bad-request", "What was sent is no certificate") from error
    return fingerprint_of_bytes(found.public_bytes(serialization.Encoding.DER))


def fingerprint_of_bytes(certificate: bytes) -> str:
    return hashlib.sha256(certificate).hexdigest()[:32]


def pinned_context(own: FleetKey, peer: str, *, server: bool) -> ssl.SSLContext:
    """Talks TLS 1.3 to whoever holds the key of the certificate `peer`, and to nobody else."""
    context = open_context(own, server=server)
    context.verify_mode = ssl.CERT_REQUIRED
    if server:
        context.num_tickets = 0  # no session is resumed, and each ticket takes a fifth of the time of a handshake
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=peer)
    return context


def open_context(own: FleetKey | None, *, server: bool) -> ssl.SSLContext:
    """TLS 1.3 that asks for no certificate of the other side. The caller checks who it is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if own is not None:
        with _pem_file(own) as path:
            context.load_cert_chain(path)
    return context


@contextlib.contextmanager
def _pem_file(own: FleetKey) -> Iterator[Path]:
    """ssl reads keys from files only."""
    with tempfile.TemporaryDirectory() as folder:  # 0700
        path = Path(folder) / "pem"
        path.touch(0o600)
        path.write_text(own.key + own.certificate)
        yield path


def _sign(
    public: ec.EllipticCurvePublicKey,
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str | x509.Name,
    *,
    addresses: tuple[str, ...],
    is_authority: bool,
) -> str:
    now = datetime.now(UTC)
    subject = _name(name)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer if isinstance(issuer, x509.Name) else _name(issuer))
        .public_key(public)
        .serial_number(int.from_bytes(os.urandom(16), "big") >> 1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True)
    )
    if addresses:
        names = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        builder = builder.add_extension(
            x509.SubjectAlternativeName([*names, x509.DNSName("localhost")]), critical=False
        )
    return builder.sign(key, hashes.SHA256()).public_bytes(_PEM).decode()


def _name(words: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, words)])
