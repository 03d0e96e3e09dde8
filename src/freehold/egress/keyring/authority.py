"""The certificate authority of one computer: it is trusted inside only, and only for the hosts that credentials name."""

import datetime
import os
import ssl
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from freehold.egress.names import Host
from freehold.errors import FreeholdError
from freehold.home import ensure_private_folder
from freehold.private_file import make_private_file, read_private_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, CertificateBuilder, GeneralName, KeyUsage, Name

KEY_FILE = "authority.key"
NAME = "Freehold: hosts with credentials"
LIFE = datetime.timedelta(days=3650)
SYSTEM_ROOTS = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


class CredentialAuthority:
    """Its key stays in the folder of the vault. A name that it was not made for is outside its own constraints."""

    def __init__(self, folder: Path, hosts: Iterable[Host]) -> None:
        """Blocks. Makes the key on first use."""
        self._folder = folder
        self._key = _read_key(folder)
        self._certificate = self._make_own(sorted({host.text: host for host in hosts}.values(), key=str))
        self._contexts: dict[str, ssl.SSLContext] = {}

    @property
    def certificate(self) -> str:
        from cryptography.hazmat.primitives.serialization import Encoding

        return self._certificate.public_bytes(Encoding.PEM).decode()

    def bundle(self) -> str:
        """What programs inside trust: the roots of this machine, and this authority."""
        found = next((Path(one) for one in SYSTEM_ROOTS if Path(one).is_file()), None)
        roots = found.read_text(errors="replace") if found is not None else ""
        return f"{roots.rstrip()}\n{self.certificate}".lstrip()

    def find_context(self, host: Host) -> ssl.SSLContext:
        """For serving as this host. Blocks the first time."""
        if host.text not in self._contexts:
            self._contexts[host.text] = self._make_context(host)
        return self._contexts[host.text]

    def _make_own(self, hosts: list[Host]) -> "Certificate":
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        builder = _begin(_name(NAME)).public_key(self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(signs=True), critical=True)
        key_id = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        builder = builder.add_extension(key_id, critical=False)
        permitted = [_constrained(host) for host in hosts]
        builder = builder.add_extension(x509.NameConstraints(permitted, None), critical=True)
        return builder.sign(self._key, hashes.SHA256())

    def _make_context(self, host: Host) -> ssl.SSLContext:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        key = ec.generate_private_key(ec.SECP256R1())
        builder = _begin(_name(None)).public_key(key.public_key())
        builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=True)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        server = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH])
        builder = builder.add_extension(server, critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        # The library loads certificates from files only. This folder is private, and the file is gone at once.
        with tempfile.NamedTemporaryFile(dir=self._folder) as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(certificate.public_bytes(Encoding.PEM) + private)
            file.flush()
            context.load_cert_chain(file.name)
        return context


def _read_key(folder: Path) -> "EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )

    path = folder / KEY_FILE
    ensure_private_folder(folder)
    if not path.exists():
        made = ec.generate_private_key(ec.SECP256R1())
        make_private_file(path, made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    content = read_private_file(path, code="egress.key", remedy=f"If nobody else could have read it: chmod 600 {path}")
    try:
        key = load_pem_private_key(content, None)
    except ValueError:
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise FreeholdError(
            "egress.key-damaged",
            f"{path} is not the key of a certificate authority",
            hint=f"Remove {path}; a new one is made, and running agents must be started again",
        )
    return key


def _begin(subject: "Name") -> "CertificateBuilder":
    from cryptography import x509

    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(_name(NAME))
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + LIFE)
    )


def _name(text: str | None) -> "Name":
    from cryptography import x509

    return x509.Name([] if text is None else [x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, text)])


def _usage(*, signs: bool) -> "KeyUsage":
    from cryptography.x509 import KeyUsage

    return KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: Host) -> "GeneralName":
    from cryptography import x509

    return x509.DNSName(host.text) if host.address is None else x509.IPAddress(host.address)


def _constrained(host: Host) -> "GeneralName":
    """A constraint on a name holds for names below it as well; no certificate for those is ever made."""
    from ipaddress import ip_network

    from cryptography import x509

    return x509.DNSName(host.text) if host.address is None else x509.IPAddress(ip_network(host.address))
