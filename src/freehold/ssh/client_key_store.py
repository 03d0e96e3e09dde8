"""The client's side: a key that never leaves this machine, its certificate, and the configuration that uses both."""

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
from freehold.ssh.connecting import Door, client_config

RENEW_BEFORE = 3600.0
"""Seconds before its end that a certificate is replaced, or a fifth of its life when that is less."""


@dataclass(frozen=True)
class Grant:
    """What an issuer gave: a certificate for our key, and where to use it."""

    id: str
    certificate: str
    expires: float
    door: Door


class Issuer(Protocol):
    """A Freehold that certifies keys: the one of this machine, or one elsewhere."""

    @property
    def name(self) -> str:
        """Distinct for each Freehold."""
        ...

    def certify(self, public_key: str, seconds: int | None) -> Grant: ...

    def still_good(self, credential: str) -> bool:
        """False when it is known to be revoked."""
        ...


def wallets_folder() -> Path:
    config = os.environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "freehold" / "ssh"


class Wallet:
    """The folder of one Freehold's key. `host` is the name it has in ssh's configuration."""

    def __init__(self, issuer: Issuer, host: str, folder: Path | None = None) -> None:
        self._issuer = issuer
        self.host = host
        digest = hashlib.sha256(issuer.name.encode()).hexdigest()[:12]
        self.folder = (folder or wallets_folder()) / digest
        self.identity = self.folder / "id"
        self.certificate = self.folder / "id-cert.pub"
        self.known_hosts = self.folder / "known_hosts"
        self.config = self.folder / "config"
        self._facts = self.folder / "certificate.json"

    def renew(self, *, seconds: int | None = None, force: bool = False) -> bool:
        """Make sure there is a key with a certificate that holds for a while; says whether it got a new one."""
        if not force and self._holds():
            return False
        public = self._ensure_key()
        grant = self._issuer.certify(public, seconds)
        self._write(self.certificate, grant.certificate.strip() + "\n")
        self._write(self.known_hosts, grant.door.known_hosts + "\n")
        self._write(self.config, self._config_for(grant.door))
        facts = {"id": grant.id, "made": time.time(), "expires": grant.expires, "of": self._issuer.name}
        self._write(self._facts, json.dumps(facts))
        return True

    def command(self, options: list[str], words: list[str]) -> list[str]:
        """The ssh that is run: with our configuration alone, so that it does the same everywhere."""
        return ["ssh", "-F", str(self.config), *options, self.host, *words]

    def pasted(self, renewal: list[str]) -> str:
        """For ~/.ssh/config: before each connection the certificate is renewed when that is due."""
        command = shlex.join(renewal).replace('"', '\\"').replace("%", "%%")
        return f'Match originalhost {self.host} exec "{command}"\n\n{self.config.read_text()}'

    def install(self, renewal: list[str], ssh_config: Path) -> bool:
        """Write an include, and name it in ssh's own configuration; says whether that was changed."""
        include = self.folder / "include"
        self._write(include, self.pasted(renewal))
        line = f'Include "{include}"\n'
        ssh_config.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        present = ssh_config.read_text() if ssh_config.exists() else ""
        if line in present:
            return False
        # At the top: within a Host block an Include would be part of it.
        mode = ssh_config.stat().st_mode & 0o777 if ssh_config.exists() else 0o600
        self._write(ssh_config.resolve(), line + present, mode)
        return True

    def _holds(self) -> bool:
        try:
            facts = json.loads(self._facts.read_text())
            made, expires, credential = float(facts["made"]), float(facts["expires"]), str(facts["id"])
        except (OSError, ValueError, KeyError, TypeError):
            return False
        present = all(path.exists() for path in (self.identity, self.certificate, self.known_hosts, self.config))
        left = min(RENEW_BEFORE, (expires - made) / 5)
        named = self.config.exists() and f"Host {self.host}\n" in self.config.read_text()
        return present and named and time.time() < expires - left and self._issuer.still_good(credential)

    def _ensure_key(self) -> str:
        from freehold.ssh.authority import make_pair

        ensure_private_folder(self.folder)
        public = self.folder / "id.pub"
        if not self.identity.exists() or not public.exists():
            pair = make_pair()
            self._write(self.identity, pair.private_key)
            self._write(public, pair.public_key + "\n")
        return public.read_text()

    def _config_for(self, door: Door) -> str:
        return client_config(
            door,
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
    """A name for ssh's configuration: nothing that it would take for a pattern, an option or a second word."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", host):
        raise FreeholdError(
            "ssh.bad-name",
            f"{host!r} cannot be a host's name in ssh's configuration",
            hint="Use letters, digits, . and -",
        )
    return host


def freehold_command() -> list[str]:
    """How to run ourselves again, from wherever ssh is started."""
    return [sys.executable, "-m", "freehold.cli.main"]
