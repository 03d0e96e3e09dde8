"""An SSH server for tests, in its own process, with a temporary computer."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.condition import wait_until

from freehold.home import Home, ensure_private_folder
from freehold.identity.sign_ins import SignIns
from freehold.manifest import Manifest
from freehold.ssh.client_config import SshEndpoint, render_client_config
from freehold.ssh.credential_issuer import CredentialIssuer, CredentialRequester
from freehold.ssh.credentials import CredentialStore
from freehold.ssh.keys import ensure_keys, host_key_path, read_public
from freehold.timeline import Timeline

ROOT = Path(__file__).parents[2]
SSH_TIMEOUT = 60
LOCAL = CredentialRequester("local", "owner", "127.0.0.1")


@dataclass(frozen=True)
class ClientKey:
    """The folder of a client: its key, and a configuration in which the server is named `computer`."""

    config: Path
    credential: str


@dataclass
class SshServerProcess:
    home: Home
    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def endpoint(self) -> SshEndpoint:
        return SshEndpoint("127.0.0.1", self.port, read_public(host_key_path(self.home)))

    def issue(
        self, *, requester: CredentialRequester = LOCAL, seconds: int | None = None, manifest: Manifest | None = None
    ) -> ClientKey:
        """Issue a certificate for a new client."""
        folder = self.make_client_folder()
        public = (folder / "id.pub").read_text()
        with Timeline(self.home.timeline) as timeline:
            issuer = CredentialIssuer(self.home, manifest or Manifest(), CredentialStore(timeline))
            issued = issuer.issue_certificate(public, requester, seconds=seconds)
        (folder / "id-cert.pub").write_text(issued.certificate + "\n")
        return ClientKey(self.write_client_config(folder), issued.credential.id)

    def make_client_folder(self) -> Path:
        """A folder with a key that is not signed."""
        (self.home.root / "clients").mkdir(exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=self.home.root / "clients"))
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "id")], check=True)
        return folder

    def write_client_config(self, folder: Path) -> Path:
        (folder / "known_hosts").write_text(self.endpoint.known_hosts + "\n")
        certificate = folder / "id-cert.pub"
        config = folder / "config"
        config.write_text(
            render_client_config(
                self.endpoint,
                name="computer",
                identity=str(folder / "id"),
                certificate=str(certificate) if certificate.exists() else None,
                known_hosts=str(folder / "known_hosts"),
            )
            + "    BatchMode yes\n    LogLevel ERROR\n"
        )
        return config

    def revoke(self, key: ClientKey) -> None:
        with Timeline(self.home.timeline) as timeline:
            assert CredentialStore(timeline).revoke(key.credential, who="owner")

    def sign_ins(self) -> SignIns:
        return SignIns(self.home.identity)

    def events(self, kind: str) -> list[dict[str, object]]:
        with Timeline(self.home.timeline, readonly=True) as timeline:
            return [dict(event.data) for event in timeline.read(kinds=[kind], limit=100_000)]

    def wait_for_event(self, kind: str, **wanted: object) -> dict[str, object]:
        def matching() -> list[dict[str, object]]:
            return [event for event in self.events(kind) if wanted.items() <= event.items()]

        return wait_until(matching)[-1]


def run_ssh(
    key: ClientKey, *words: str, options: tuple[str, ...] = (), stdin: bytes | None = None, check: bool = False
) -> "subprocess.CompletedProcess[bytes]":
    argv = ["ssh", "-F", str(key.config), *options, "computer", *words]
    given: dict[str, object] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    return subprocess.run(argv, capture_output=True, timeout=SSH_TIMEOUT, check=check, **given)  # type: ignore[call-overload,no-any-return]


@contextlib.contextmanager
def run_ssh_server(root: Path, **settings: object) -> Iterator[SshServerProcess]:
    """`settings` are those of `SshSettings`; `connection_limits` is a dictionary."""
    home = Home(root=root, run=root / "run")
    for folder in (home.root, home.run, home.vault):
        ensure_private_folder(folder)
    ensure_keys(home)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.ssh.ssh_server", str(root), json.dumps(settings)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the server did not start"
        yield SshServerProcess(home, int(line), process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SSH_TIMEOUT)
    assert process.returncode == 0


async def _serve(root: Path, settings: dict[str, object]) -> None:
    from freehold.computer import Computer
    from freehold.ssh.connection_limiter import ConnectionLimits
    from freehold.ssh.server import SshSettings, serve

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    limits = ConnectionLimits(**settings.pop("connection_limits", {}))  # type: ignore[arg-type]
    defaults: dict[str, object] = {"host": "127.0.0.1", "port": 0, "forwarding": True, "owner": None}
    defaults |= {"sign_in_idle": 1e6, "sign_in_absolute": 1e6, "connection_limits": limits}
    chosen = SshSettings(**{**defaults, **settings})  # type: ignore[arg-type]
    async with (
        Computer.start() as computer,
        serve(Home(root=root, run=root / "run"), chosen, computer) as serving,
    ):
        print(serving.port, flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), json.loads(sys.argv[2])))
