"""Starting, following and killing a real keeper."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from freehold.home import Home, find_home
from freehold.keeper.client import call_keeper
from freehold.keeper.processes import command_of

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Stead:
    """A home with ports of its own, whose keeper can be started many times."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.home: Home = find_home(folder / "home")
        self.gateway_port, self.keeper_port, self.metrics_port = free_ports(3)
        self.environment = {
            **os.environ,
            "FREEHOLD_HOME": str(self.home.root),
            "FREEHOLD_GATEWAY_PORT": str(self.gateway_port),
            "FREEHOLD_KEEPER_PORT": str(self.keeper_port),
            "FREEHOLD_OBSERVE_METRICS_PORT": str(self.metrics_port),
            "FREEHOLD_SSH_ENABLED": "false",  # has tests of its own
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            **environment,
        }

    @contextmanager
    def keeper(self, *options: str) -> Iterator["KeeperProcess"]:
        keeper = KeeperProcess(self, options)
        try:
            yield keeper
        finally:
            keeper.close()

    def run(self, *words: str, check: bool = False) -> "subprocess.CompletedProcess[str]":
        """A verb of the command line."""
        argv = [sys.executable, "-m", "freehold.cli.main", *words]
        return subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=PATIENCE, check=check)

    def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        return call_keeper(self.home, method, params)


class KeeperProcess:
    def __init__(self, stead: Stead, options: tuple[str, ...], argv: list[str] | None = None) -> None:
        self.stead = stead
        self._reading, writing = os.pipe()
        argv = argv or [sys.executable, "-m", "tests.keeper.driver"]
        argv = [*argv, "--home", str(stead.home.root), "--report", str(writing)]
        self.process = subprocess.Popen(
            [*argv, *options], env=stead.environment, pass_fds=[writing], cwd=ROOT, stderr=subprocess.PIPE
        )
        os.close(writing)
        self._left = b""

    def next(self, *wanted: str) -> dict[str, Any]:
        """The next event of these kinds; fails when the keeper says nothing more or takes too long."""
        deadline = time.monotonic() + PATIENCE
        while True:
            line, found, rest = self._left.partition(b"\n")
            if found:
                self._left = rest
                event: dict[str, Any] = json.loads(line)
                if event["event"] in wanted:
                    return event
                continue
            ready, _, _ = select.select([self._reading], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self._reading, 65536) if ready else b""
            if not data:
                raise AssertionError(f"no {wanted} from the keeper; it said {self.words()!r}")
            self._left += data

    def words(self) -> str:
        if self.process.poll() is None:
            return "nothing yet"
        return self.process.communicate()[1].decode() if self.process.stderr else ""

    def pid_of(self, program: str) -> int:
        programs = {one["name"]: one for one in self.stead.call("status")["programs"]}
        pid = programs[program]["pid"]
        assert isinstance(pid, int)
        return pid

    def kill(self) -> None:
        """-9, and wait until the kernel has taken everything of it away."""
        watched = [os.pidfd_open(pid) for pid in self.family()]
        self.process.kill()
        self.process.wait()
        for descriptor in watched:
            assert select.select([descriptor], [], [], 10)[0], "a child has outlived its keeper"
            os.close(descriptor)

    def family(self) -> list[int]:
        """Everything that descends from the keeper."""
        parents: dict[int, int] = {}
        for name in os.listdir("/proc"):  # noqa: PTH208
            if name.isdigit():
                try:
                    stat = Path(f"/proc/{name}/stat").read_text()
                except OSError:
                    continue
                parents[int(name)] = int(stat[stat.rindex(")") + 2 :].split()[1])
        found: list[int] = []
        frontier = {self.process.pid}
        while frontier:
            frontier = {pid for pid, parent in parents.items() if parent in frontier}
            found += [pid for pid in frontier if command_of(pid)]
        return found

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()
        os.close(self._reading)
