"""The two issuers of client certificates: a Freehold on this machine, or one elsewhere."""

import os
import socket
from urllib.parse import urlsplit

from freehold.client.address import is_local, read_address
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.calls import GetKeeperStatus
from freehold.keeper.client import call_keeper
from freehold.ssh.client_config import SshEndpoint
from freehold.ssh.client_key_store import ClientCertificate
from freehold.ssh.credential_issuer import CredentialIssuer, CredentialRequester
from freehold.ssh.credentials import Credential, CredentialStore
from freehold.timeline import Timeline

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class LocalIssuer:
    """The Freehold in a home on this machine. A user who can read its vault is its owner."""

    def __init__(self, home: Home) -> None:
        from freehold.manifest import require_manifest

        if not home.root.is_dir():
            raise FreeholdError("home.missing", f"There is no Freehold in {home.root}", hint="Create one: freehold up")
        self._home = home
        self._manifest = require_manifest(home.manifest, os.environ).manifest

    @property
    def name(self) -> str:
        return f"home {self._home.root}"

    @property
    def page_ports(self) -> frozenset[int]:
        """The ports of this machine at which a browser opens the control center and the recovery page."""
        return frozenset({self._manifest.gateway.port, self._manifest.keeper.port})

    def certify(self, public_key: str, seconds: int | None) -> ClientCertificate:
        with Timeline(self._home.timeline) as timeline:
            issuer = CredentialIssuer(self._home, self._manifest, CredentialStore(timeline))
            requester = CredentialRequester("local", "owner", "127.0.0.1")
            issued = issuer.issue_certificate(public_key, requester, seconds=seconds, label=socket.gethostname())
            endpoint = issuer.endpoint()
        host = "127.0.0.1" if endpoint.host == "localhost" else endpoint.host
        return ClientCertificate(
            issued.credential.id,
            issued.certificate,
            issued.credential.expires,
            SshEndpoint(host, endpoint.port, endpoint.host_key),
        )

    def is_still_valid(self, credential: str) -> bool:
        with Timeline(self._home.timeline) as timeline:
            found = CredentialStore(timeline).get(credential)
        return found is not None and found.revoked is None

    def require_running(self) -> None:
        """Its first connection starts the server, so one that waits for it counts as running."""
        programs = {program.name: program for program in call_keeper(self._home, GetKeeperStatus()).programs}
        server = programs.get("ssh")
        if server is None or server.state not in ("idle", "starting", "ready"):
            why = "" if server is None or server.last_error is None else f": {server.last_error}"
            raise FreeholdError(
                "ssh.not-running",
                f"The SSH server of {self._home.root} does not answer{why}",
                hint="See why: freehold status, freehold logs ssh",
            )

    def list(self) -> list[Credential]:
        with Timeline(self._home.timeline) as timeline:
            return CredentialStore(timeline).list()

    def revoke(self, credential: str) -> bool:
        with Timeline(self._home.timeline) as timeline:
            return CredentialStore(timeline).revoke(credential, who="owner")


class RemoteIssuer:
    """A Freehold elsewhere, with the API token that `freehold login` has stored."""

    def __init__(self, url: str) -> None:
        self._url = read_address(url)

    @property
    def name(self) -> str:
        return f"url {self._url}"

    @property
    def page_ports(self) -> frozenset[int]:
        """Its control center may be opened through a tunnel, at a port of this machine."""
        port = urlsplit(self._url).port
        return frozenset({port}) if port is not None and is_local(self._url) else frozenset()

    def certify(self, public_key: str, seconds: int | None) -> ClientCertificate:
        from freehold.client import Freehold

        hours = None if seconds is None else seconds / 3600
        with Freehold.sync(self._url, token=os.environ.get("FREEHOLD_TOKEN") or None) as home:
            server = home.ssh.server()
            endpoint = SshEndpoint(
                self._host_from_here(server.host), server.port, " ".join(server.known_hosts.split()[1:3])
            )
            issued = home.ssh.certify(public_key, hours=hours, label=socket.gethostname())
        return ClientCertificate(issued.id, issued.certificate, issued.expires.timestamp(), endpoint)

    def is_still_valid(self, credential: str) -> bool:
        from freehold.client import Freehold

        with Freehold.sync(self._url, token=os.environ.get("FREEHOLD_TOKEN") or None) as home:
            return any(one.id == credential and not one.revoked for one in home.ssh.list())

    def _host_from_here(self, host: str) -> str:
        """The host of the server, as seen from this machine."""
        if host not in _LOOPBACK or is_local(self._url):
            return "127.0.0.1" if host == "localhost" else host
        if host == "localhost":  # it listens on all addresses and does not know its public name
            return urlsplit(self._url).hostname or host
        raise FreeholdError(
            "ssh.only-there",
            f"The SSH server of {self._url} listens on its loopback address only",
            hint="Set ssh.host in its freehold.toml to an address that this machine can reach",
        )
