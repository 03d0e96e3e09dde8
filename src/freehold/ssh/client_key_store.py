"""The key of an SSH client on this machine, its certificate, and the ssh configuration that uses both."""

import contextlib
import hashlib
import json
import os
import re
import secrets
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from freehold.errors import FreeholdError
from freehold.home import ensure_private_folder
from freehold.ssh.client_config import SshEndpoint, render_client_config

RENEW_BEFORE_SECONDS = 3600.0
"""A certificate is renewed this long before it expires, or at a fifth of its lifetime when that is less."""


@dataclass(frozen=True)
class ClientCertificate:
    """A certificate for the key of this client, and the server that accepts it."""

    id: str
    certificate: str
    expires: float
    endpoint: SshEndpoint


class CertificateIssuer(Protocol):
    """A Freehold that signs keys: on this machine or elsewhere."""

    @property
    def name(self) -> str:
        """Different for each Freehold."""
        ...

    def certify(self, public_key: str, seconds: int | None) -> ClientCertificate: ...

    def is_still_valid(self, credential: str) -> bool:
        """False when the credential was revoked."""
        ...


def key_stores_folder() -> Path:
    config = os.environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "freehold" / "ssh"


class ClientKeyStore:
    """The folder with the key for one Freehold. `host` is its name in the configuration of ssh."""

    def __init__(self, issuer: CertificateIssuer, host: str, folder: Path | None = None) -> None:
        self._issuer = issuer
        self.host = host
        digest = hashlib.sha256(issuer.name.encode()).hexdigest()[:12]
        self.folder = (folder or key_stores_folder()) / digest
        self.identity = self.folder / "id"
        self.certificate = self.folder / "id-cert.pub"
        self.known_hosts = self.folder / "known_hosts"
        self.config = self.folder / "config"
        self._certificate_facts = self.folder / "certificate.json"

    def renew(self, *, seconds: int | None = None, force: bool = False) -> bool:
        """Make sure that there is a key with a valid certificate. Returns whether a new certificate was issued."""
        if not force and self._is_current():
            return False
        public = self._ensure_key()
        certificate = self._issuer.certify(public, seconds)
        self._write(self.certificate, certificate.certificate.strip() + "\n")
        self._write(self.known_hosts, certificate.endpoint.known_hosts + "\n")
        self._write(self.config, self._render_config(certificate.endpoint))
        facts = {"id": certificate.id, "made": time.time(), "expires": certificate.expires, "of": self._issuer.name}
        self._write(self._certificate_facts, json.dumps(facts))
        return True

    def ssh_command(self, options: list[str], command: list[str]) -> list[str]:
        """The ssh command line. It uses only our configuration, so that it works the same on each machine."""
        return ["ssh", "-F", str(self.config), *options, self.host, *command]

    def render_ssh_config(self, renewal: list[str]) -> str:
        """The text for ~/.ssh/config. It renews the certificate, when needed, before each connection."""
        command = shlex.join(renewal).replace('"', '\\"').replace("%", "%%")
        return f'Match originalhost {self.host} exec "{command}"\n\n{self.config.read_text()}'

    def install(self, renewal: list[str], ssh_config: Path) -> bool:
        """Write a file and include it from the configuration of ssh. Returns whether that configuration changed."""
        include = self.folder / "include"
        self._write(include, self.render_ssh_config(renewal))
        line = f'Include "{include}"\n'
        ssh_config.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        present = ssh_config.read_text() if ssh_config.exists() else ""
        if line in present:
            return False
        # At the top: an Include after a Host line would belong to that host.
        mode = ssh_config.stat().st_mode & 0o777 if ssh_config.exists() else 0o600
        self._write(ssh_config.resolve(), line + present, mode)
        return True

    def _is_current(self) -> bool:
        try:
            facts = json.loads(self._certificate_facts.read_text())
            made, expires, credential = float(facts["made"]), float(facts["expires"]), str(facts["id"])
        except (OSError, ValueError, KeyError, TypeError):
            return False
        present = all(path.exists() for path in (self.identity, self.certificate, self.known_hosts, self.config))
        left = min(RENEW_BEFORE_SECONDS, (expires - made) / 5)
        named = self.config.exists() and f"Host {self.host}\n" in self.config.read_text()
        # Made in the future: the clock has gone back, and the server would not accept it yet.
        in_time = made <= time.time() < expires - left
        return present and named and in_time and self._issuer.is_still_valid(credential)

    def _ensure_key(self) -> str:
        from freehold.ssh.authority import make_key_pair

        ensure_private_folder(self.folder)
        public = self.folder / "id.pub"
        if not self.identity.exists() or not public.exists():
            pair = make_key_pair()
            self._write(self.identity, pair.private_key)
            self._write(public, pair.public_key + "\n")
        return public.read_text()

    def _render_config(self, endpoint: SshEndpoint) -> str:
        return render_client_config(
            endpoint,
            name=self.host,
            identity=f'"{self.identity}"',
            certificate=f'"{self.certificate}"',
            known_hosts=f'"{self.known_hosts}"',
        )

    @staticmethod
    def _write(path: Path, text: str, mode: int = 0o600) -> None:
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
            draft.replace(path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                draft.unlink()
            raise


def check_host(host: str) -> str:
    """A host name for the configuration of ssh. Patterns, options and spaces are refused."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", host):
        raise FreeholdError(
            "ssh.bad-name",
            f"{host!r} is not a valid host name for the configuration of ssh",
            hint="Use letters, digits, dots, underscores and dashes",
        )
    return host


def freehold_command() -> list[str]:
    """The command line of this program, for ssh to run."""
    return [sys.executable, "-m", "freehold.cli.main"]
