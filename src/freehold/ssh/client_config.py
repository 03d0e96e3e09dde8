"""What a client needs to connect: a known_hosts line and a block for the configuration of ssh."""

import re
from dataclasses import dataclass

from freehold.errors import FreeholdError

PRINCIPAL = "agent"
"""The only user name: in each certificate and in the computer."""

_HOST = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:_-]{0,252}")
_HOST_KEY = re.compile(r"ssh-ed25519 [A-Za-z0-9+/]{20,200}={0,2}")


@dataclass(frozen=True)
class SshEndpoint:
    """The address of an SSH server and its host key.

    Both are written into the configuration of ssh, which can name programs to run, and may come from another machine.
    So a value that contains a space or a line break is refused.
    """

    host: str
    port: int
    host_key: str

    def __post_init__(self) -> None:
        fits = _HOST.fullmatch(self.host) and _HOST_KEY.fullmatch(self.host_key) and 0 <= self.port <= 65535
        if not fits:
            raise FreeholdError(
                "ssh.bad-endpoint",
                f"The Freehold sent an invalid SSH address, port or host key: {ascii(self.host)[:80]}, {self.port}",
                hint="Do not connect until you know why; freehold login --list shows the Freeholds that you have tokens for",
            )

    @property
    def known_hosts(self) -> str:
        """A line for known_hosts, with the alias that the configuration uses."""
        return f"{host_key_alias(self)} {self.host_key}"


def host_key_alias(endpoint: SshEndpoint) -> str:
    """The alias of the host key. It contains the port, because one machine may run several Freeholds."""
    return f"freehold-{endpoint.host}-{endpoint.port}".replace(":", "-")


def render_client_config(
    endpoint: SshEndpoint, *, name: str = "freehold", identity: str = "~/.ssh/freehold", certificate: str | None = None,
    known_hosts: str = "~/.ssh/freehold_known_hosts",
) -> str:  # fmt: skip
    """A `Host` block for ~/.ssh/config."""
    lines = [
        f"Host {name}",
        f"    HostName {endpoint.host}",
        f"    Port {endpoint.port}",
        f"    User {PRINCIPAL}",
        f"    IdentityFile {identity}",
        *([f"    CertificateFile {certificate}"] if certificate else []),
        "    IdentitiesOnly yes",
        f"    HostKeyAlias {host_key_alias(endpoint)}",
        f"    UserKnownHostsFile {known_hosts}",
        "    StrictHostKeyChecking yes",
        "    ForwardAgent no",
        # The fastest ciphers of the server on machines with AES instructions.
        "    Ciphers aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com",
    ]
    return "\n".join(lines) + "\n"
