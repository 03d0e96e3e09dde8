"""What a client needs to know to come in: known_hosts and a piece of configuration, ready to paste."""

from dataclasses import dataclass

PRINCIPAL = "agent"
"""The only name there is to log in with, inside and in every certificate."""


@dataclass(frozen=True)
class Door:
    """Where the server is for those who connect, and the key it must show."""

    host: str
    port: int
    host_key: str

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
