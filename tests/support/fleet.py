"""A real fleet on this machine: a head, and nodes that have joined by the command line, each at its own address."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.condition import wait_until
from tests.support.ports import free_ports

from freehold.errors import FreeholdError
from freehold.fleet.backend import RayBackend
from freehold.fleet.fleet_client import ask_fleet
from freehold.fleet.place import read_place
from freehold.fleet.status import FleetStatus
from freehold.home import Home, find_home
from freehold.strict_json import decode

HEAD = "127.0.0.2"
START_TIMEOUT = 200.0


@dataclass
class RunningFleet:
    home: Home
    folder: Path
    port: int
    head: subprocess.Popen[bytes] | None = None
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"ray://{self.home.root}"

    def backend(self, wishes: str = "") -> RayBackend:
        return RayBackend(read_place(self.place + wishes))

    def ask(self, do: str, **more: Any) -> Any:
        return asyncio.run(ask_fleet(self.home.run / "fleet.sock", do, **more))

    def status(self) -> FleetStatus:
        return decode(FleetStatus, self.ask("status"))

    async def ask_now(self, do: str, **more: Any) -> Any:
        """As `ask`, in a test that is async."""
        return await ask_fleet(self.home.run / "fleet.sock", do, **more)

    async def status_now(self) -> FleetStatus:
        return decode(FleetStatus, await self.ask_now("status"))

    def start_head(self) -> None:
        with (self.folder / "head.log").open("ab") as log:
            self.head = _start(["-m", "freehold.fleet", "--home", str(self.home.root)], log.fileno())
        wait_until(self._answers, START_TIMEOUT)

    def _answers(self) -> bool:
        """Its socket is there a moment before it listens."""
        try:
            self.ask("status")
        except FreeholdError:
            return False
        return True

    def join(
        self, name: str, *, cpus: float = 4, memory: str = "4GiB", again: bool = False, words: tuple[str, ...] = ()
    ) -> None:
        """Does not wait until it is ready."""
        number = len(self.nodes) + 3
        options = ["--folder", str(self.folder / name)]
        if not again:
            options += [self.ask("code")["code"], "--name", name, "--address", f"127.0.0.{number}"]
            options += [
                "--port",
                str(free_ports(1)[0]),
                "--ports",
                "0",
                "--cpus",
                str(cpus),
                "--memory",
                memory,
                *words,
            ]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.nodes[name] = _start(["-m", "freehold.cli.main", "fleet", "join", *options], log.fileno())

    def wait_ready(self, count: int) -> None:
        def is_ready() -> bool:
            for name, process in self.nodes.items():
                assert process.poll() is None, (self.folder / f"{name}.log").read_text()[-3000:]
            assert self.head is not None
            assert self.head.poll() is None, (self.folder / "head.log").read_text()[-3000:]
            found = self.status()
            return found.is_ready and sum(node.state == "ready" for node in found.nodes) >= count

        wait_until(is_ready, START_TIMEOUT, lambda: time.sleep(0.1))

    def stop(self) -> None:
        running = [one for one in (*self.nodes.values(), self.head) if one is not None]
        for process in running:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _start(words: list[str], log: int) -> "subprocess.Popen[bytes]":
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen([sys.executable, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)


@contextmanager
def running_fleet(
    count: int = 2, *, settings: str = "", cpus: float = 4, memory: str = "4GiB"
) -> Iterator[RunningFleet]:
    """A head and `count` nodes, ready."""
    with tempfile.TemporaryDirectory(prefix="fh-fleet-") as folder:
        home = find_home(Path(folder) / "home")
        for path in (home.root, home.run):
            path.mkdir(parents=True, mode=0o700)
        (port,) = free_ports(1)
        home.manifest.write_text(
            f'[fleet]\nenabled = true\naddress = "{HEAD}"\nport = {port}\nfixed_ports = false\n{settings}'
        )
        fleet = RunningFleet(home, Path(folder), port)
        try:
            fleet.start_head()
            for number in range(count):
                fleet.join(f"node-{number}", cpus=cpus, memory=memory)
            fleet.wait_ready(count)
            yield fleet
        finally:
            fleet.stop()


class SharedFleet:
    """A head and two nodes, three nodes of Ray, for all tests of the group `fleet`. They start slowly.

    They end with the group: their hundreds of threads would slow down every test after it.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.running: RunningFleet | None = None

    def open(self) -> None:
        if self.running is None:
            self.running = self._stack.enter_context(
                running_fleet(settings='save_every = "1s"\nmax_per_session = 40\n')
            )

    def close(self) -> None:
        self._stack.close()
        self.running = None


shared_fleet = SharedFleet()
