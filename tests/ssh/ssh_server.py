"""A side door that really listens, before a throw-away computer: a process of its own, told what to do by its arguments."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from freehold.home import Home, ensure_private_folder
from freehold.identity.sessions import Sessions
from freehold.manifest import Manifest
from freehold.ssh.connecting import Door, client_config
from freehold.ssh.credentials import Credentials
from freehold.ssh.issuing import Issuing, Maker
from freehold.ssh.keys import ensure_keys, host_key_path, read_public
from freehold.timeline import Timeline

ROOT = Path(__file__).parents[2]
PATIENCE = 60
LOCAL = Maker("local", "owner", "127.0.0.1")


@dataclass(frozen=True)
class Key:
    """A client's folder: its key, and a configuration in which the server is called `computer`."""

    config: Path
    credential: str


@dataclass
class Standing:
    home: Home
    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def door(self) -> Door:
        return Door("127.0.0.1", self.port, read_public(host_key_path(self.home)))

    def issue(self, *, maker: Maker = LOCAL, seconds: int | None = None, manifest: Manifest | None = None) -> Key:
        """As the owner's own client does it."""
        folder = self.client()
        public = (folder / "id.pub").read_text()
        with Timeline(self.home.timeline) as timeline:
            issuing = Issuing(self.home, manifest or Manifest(), Credentials(timeline))
            issued = issuing.issue_certificate(public, maker, seconds=seconds)
        (folder / "id-cert.pub").write_text(issued.certificate + "\n")
        return Key(self.configure(folder), issued.credential.id)

    def client(self) -> Path:
        """A folder with a key that nobody has certified."""
        (self.home.root / "clients").mkdir(exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=self.home.root / "clients"))
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "id")], check=True)
        return folder

    def configure(self, folder: Path) -> Path:
        (folder / "known_hosts").write_text(self.door.known_hosts + "\n")
        certificate = folder / "id-cert.pub"
        config = folder / "config"
        config.write_text(
            client_config(
                self.door,
                name="computer",
                identity=str(folder / "id"),
                certificate=str(certificate) if certificate.exists() else None,
                known_hosts=str(folder / "known_hosts"),
            )
            + "    BatchMode yes\n    LogLevel ERROR\n"
        )
        return config

    def revoke(self, key: Key) -> None:
        with Timeline(self.home.timeline) as timeline:
            assert Credentials(timeline).revoke(key.credential, who="owner")

    def sessions(self) -> Sessions:
        return Sessions(self.home.identity)

    def events(self, kind: str) -> list[dict[str, object]]:
        with Timeline(self.home.timeline, readonly=True) as timeline:
            return [dict(event.data) for event in timeline.read(kinds=[kind], limit=100_000)]

    def wait_for_event(self, kind: str, **wanted: object) -> dict[str, object]:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for event in reversed(self.events(kind)):
                if wanted.items() <= event.items():
                    return event
            time.sleep(0.02)
        raise AssertionError(f"no {kind} with {wanted}")


def ssh(
    key: Key, *words: str, options: tuple[str, ...] = (), stdin: bytes | None = None, check: bool = False
) -> "subprocess.CompletedProcess[bytes]":
    argv = ["ssh", "-F", str(key.config), *options, "computer", *words]
    given: dict[str, object] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    return subprocess.run(argv, capture_output=True, timeout=PATIENCE, check=check, **given)  # type: ignore[call-overload,no-any-return]


@contextlib.contextmanager
def standing(root: Path, **settings: object) -> Iterator[Standing]:
    """`settings` are those of `SshSettings`, the gate's limits under `gate`."""
    home = Home(root=root, run=root / "run")
    for folder in (home.root, home.run, home.vault):
        ensure_private_folder(folder)
    ensure_keys(home)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.ssh.standing", str(root), json.dumps(settings)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the server did not start"
        yield Standing(home, int(line), process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


async def _serve(root: Path, settings: dict[str, object]) -> None:
    from freehold.computer import Computer
    from freehold.ssh.gate import GateLimits
    from freehold.ssh.server import SshSettings, serve

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    gate = GateLimits(**settings.pop("gate", {}))  # type: ignore[arg-type]
    fixed: dict[str, object] = {"host": "127.0.0.1", "port": 0, "forwarding": True, "owner": None}
    chosen = SshSettings(**{**fixed, "session_idle": 1e6, "session_absolute": 1e6, **settings}, gate=gate)  # type: ignore[arg-type]
    async with (
        Computer.start() as computer,
        serve(Home(root=root, run=root / "run"), chosen, computer) as serving,
    ):
        print(serving.port, flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), json.loads(sys.argv[2])))
