"""From the manifest to what egress uses."""

from freehold.credentials.section import CredentialSection, CredentialsSection
from freehold.egress.keyring import HostCredential
from freehold.egress.names import parse_host, parse_port, split_authority
from freehold.manifest import Manifest


def read_credentials(manifest: Manifest) -> tuple[HostCredential, ...]:
    return tuple(_read(name, one) for name, one in manifest.section(CredentialsSection).credentials.items())


def _read(name: str, one: CredentialSection) -> HostCredential:
    host, port = split_authority(one.host)
    return HostCredential(
        name,
        parse_host(host),
        one.secret.removeprefix("secret:"),
        parse_port(port) if port is not None else 443,
        one.auth,
        one.header,
        one.user,
        tuple(one.paths),
        frozenset(one.methods),
        one.writes,
        frozenset(one.tools),
        tuple(one.env),
        one.scope,
    )
