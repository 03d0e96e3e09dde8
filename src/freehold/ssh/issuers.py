"""The Freeholds that a wallet gets its certificates from."""

import os
import socket
from urllib.parse import urlsplit

from freehold.client.address import is_here, read_address
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.ssh.connecting import Door
from freehold.ssh.credentials import Credential, Credentials
from freehold.ssh.issuing import Issuing, Maker
from freehold.ssh.wallet import Grant
from freehold.timeline import Timeline

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class LocalIssuer:
    """The Freehold in a home of this machine. Whoever can read its vault is its owner."""

    def __init__(self, home: Home) -> None:
        from freehold.manifest import require_manifest

        if not home.root.is_dir():
            raise FreeholdError("home.missing", f"There is no Freehold in {home.root}", hint="freehold up makes one")
        self._home = home
        self._manifest = require_manifest(home.manifest, os.environ).manifest

    @property
    def name(self) -> str:
        return f"home {self._home.root}"

    def certify(self, public_key: str, seconds: int | None) -> Grant:
        with Timeline(self._home.timeline) as timeline:
            issuing = Issuing(self._home, self._manifest, Credentials(timeline))
            maker = Maker("local", "owner", "127.0.0.1")
            issued = issuing.issue_certificate(public_key, maker, seconds=seconds, label=socket.gethostname())
            door = issuing.door()
        host = "127.0.0.1" if door.host == "localhost" else door.host
        return Grant(
            issued.credential.id, issued.certificate, issued.credential.expires, Door(host, door.port, door.host_key)
        )

    def still_good(self, credential: str) -> bool:
        with Timeline(self._home.timeline) as timeline:
            found = Credentials(timeline).get(credential)
        return found is not None and found.revoked is None

    def require_running(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            try:
                asking.connect(str(self._home.run / "ssh.sock"))
            except OSError:
                raise FreeholdError(
                    "ssh.not-running",
                    f"The SSH server of {self._home.root} does not answer",
                    hint="Start it: freehold up; see why it does not: freehold logs ssh",
                ) from None

    def list(self) -> list[Credential]:
        with Timeline(self._home.timeline) as timeline:
            return Credentials(timeline).list()

    def revoke(self, credential: str) -> bool:
        with Timeline(self._home.timeline) as timeline:
            return Credentials(timeline).revoke(credential, who="owner")


class RemoteIssuer:
    """A Freehold elsewhere, by the token that `freehold login` has stored."""

    def __init__(self, url: str) -> None:
        self._url = read_address(url)

    @property
    def name(self) -> str:
        return f"url {self._url}"

    def certify(self, public_key: str, seconds: int | None) -> Grant:
        from freehold.client import Freehold

        hours = None if seconds is None else seconds / 3600
        with Freehold.sync(self._url, token=os.environ.get("FREEHOLD_TOKEN") or None) as home:
            told = home.ssh.door()
            door = Door(self._reached_at(told.host), told.port, " ".join(told.known_hosts.split()[1:3]))
            issued = home.ssh.certify(public_key, hours=hours, label=socket.gethostname())
        return Grant(issued.id, issued.certificate, issued.expires.timestamp(), door)

    def still_good(self, credential: str) -> bool:
        from freehold.client import Freehold

        with Freehold.sync(self._url, token=os.environ.get("FREEHOLD_TOKEN") or None) as home:
            return any(one.id == credential and not one.revoked for one in home.ssh.list())

    def _reached_at(self, host: str) -> str:
        """Where it says it is, as seen from here."""
        if host not in _LOOPBACK or is_here(self._url):
            return "127.0.0.1" if host == "localhost" else host
        if host == "localhost":  # it listens everywhere and does not know its name
            return urlsplit(self._url).hostname or host
        raise FreeholdError(
            "ssh.only-there",
            f"The SSH server of {self._url} listens on its own loopback only",
            hint="Set ssh.host there to an address that this machine reaches",
        )
