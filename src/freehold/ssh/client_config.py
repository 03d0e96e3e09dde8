"""What a client needs to know to come in: known_hosts and a piece of configuration, ready to paste."""

import re
from dataclasses import dataclass

from freehold.errors import FreeholdError

PRINCIPAL = "agent"
"""The only name there is to log in with, inside and in every certificate."""

_HOST = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:_-]{0,252}")
_HOST_KEY = re.compile(r"ssh-ed25519 [A-Za-z0-9+/]{20,200}={0,2}")


@dataclass(frozen=True)
class Door:
    """Where the server is for those who connect, and the key it must show.

    It is written into a configuration that can name programs to run, and may be told by a machine elsewhere: what has a
    second line or word in it is refused, whoever told it.
    """

    host: str
    port: int
    host_key: str

    def __post_init__(self) -> None:
        fits = _HOST.fullmatch(self.host) and _HOST_KEY.fullmatch(self.host_key) and 0 <= self.port <= 65535
        if not fits:
            raise FreeholdError(
                "ssh.bad-door",
                "That Freehold says of its SSH server what cannot be an address, a port and a host key",
                hint="Do not trust it before you know why; freehold login --list shows the ones you have tokens for",
            )

    @property
    def known_hosts(self) -> str:
        """A line for known_hosts, under the name that our configuration looks it up by."""
        return f"{alias_of(self)} {self.host_key}"


def alias_of(door: Door) -> str:
    """The name the host key is kept under: several Freeholds on one machine differ only in their port."""
    return f"freehold-{door.host}-{door.port}".replace(":", "-")


def client_config(
    door: Door, *, name: str = "freehold", identity: str = "~/.ssh/freehold", certificate: str | None = None,
    known_hosts: str = "~/.ssh/freehold_known_hosts",
) -> str:  # fmt: skip
    """A `Host` block for ~/.ssh/config."""
    lines = [
        f"Host {name}",
        f"    HostName {door.host}",
        f"    Port {door.port}",
        f"    User {PRINCIPAL}",
        f"    IdentityFile {identity}",
        *([f"    CertificateFile {certificate}"] if certificate else []),
        "    IdentitiesOnly yes",
        f"    HostKeyAlias {alias_of(door)}",
        f"    UserKnownHostsFile {known_hosts}",
        "    StrictHostKeyChecking yes",
        "    ForwardAgent no",
        # By far the fastest of those the server speaks, on every machine of the last decade.
        "    Ciphers aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com",
    ]
    return "\n".join(lines) + "\n"
