"""A NATS server of the test's own, with JetStream, on a free loopback port."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.condition import wait_until
from tests.support.ports import free_ports

TOKEN = "a-token-of-the-tests"


@dataclass
class NatsServer:
    """A server that can be stopped, hung and started again. It keeps its port and its streams."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self, more: str = "") -> None:
        """`more` is added to the configuration."""
        text = f'listen: "127.0.0.1:{self.port}"\njetstream {{ store_dir: "{self.folder}/js", max_file_store: 64MB }}\n'
        (self.folder / "nats.conf").write_text(f'{text}authorization {{ token: "{TOKEN}" }}\n{more}\n')
        command = [str(Path(sys.executable).with_name("nats-server")), "-c", str(self.folder / "nats.conf")]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        wait_until(self._answers)

    def kill(self) -> None:
        """As a crash. Idempotent."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()

    def hang(self) -> None:
        """It accepts connections and answers nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                return connection.recv(4) == b"INFO"
        except OSError:
            return False


@contextlib.contextmanager
def running_nats() -> Iterator[NatsServer]:
    folder = Path(tempfile.mkdtemp(prefix="nats-"))
    server = NatsServer(folder, free_ports(1)[0])
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder)
