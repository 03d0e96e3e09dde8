"""A complete Freehold in a folder of its own: its home, its ports and its processes."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.support.ports import free_ports
from tests.support.processes import find_descendants

from freehold.home import Home, find_home
from freehold.identity.sign_ins import SignIns, control_center_url
from freehold.keeper.calls import GetKeeperStatus, KeeperStatus, ProgramStatus
from freehold.keeper.client import call_keeper
from freehold.typed_call import TypedCall

ROOT = Path(__file__).parents[2]
PROCESS_TIMEOUT = 120.0
KEEPER = "freehold.keeper"
FAST_KEEPER = "tests.support.keeper_driver"
Reply = TypeVar("Reply")


class FreeholdHarness:
    """A home with its own ports. Its keeper can be started many times."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.home: Home = find_home(folder / "home")
        self.gateway_port, self.keeper_port, self.metrics_port, self.ssh_port = free_ports(4)
        self.config = folder / "config"
        self.environment = {
            **os.environ,
            "FREEHOLD_HOME": str(self.home.root),
            "FREEHOLD_GATEWAY_PORT": str(self.gateway_port),
            "FREEHOLD_KEEPER_PORT": str(self.keeper_port),
            "FREEHOLD_OBSERVE_METRICS_PORT": str(self.metrics_port),
            "FREEHOLD_SSH_PORT": str(self.ssh_port),
            "FREEHOLD_SSH_ENABLED": "false",  # few tests need it
            "FREEHOLD_AGENTS_TITLES": "prompt",  # the scripted model is asked only what a test wants
            "XDG_CONFIG_HOME": str(self.config),
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            **environment,
        }

    @property
    def url(self) -> str:
        """Where programs reach the gateway. Not every resolver knows the names below localhost."""
        return f"http://localhost:{self.gateway_port}"

    @property
    def pages(self) -> str:
        """Where a browser opens the control center."""
        return control_center_url(self.gateway_port, None)

    @contextmanager
    def keeper(self, *options: str, module: str = FAST_KEEPER) -> Iterator["KeeperProcess"]:
        """Run a keeper until the block ends, then kill it. The default has short times, for tests of faults."""
        keeper = KeeperProcess(self, module, options)
        try:
            yield keeper
        finally:
            keeper.close()

    def run(self, *words: str, check: bool = False) -> "subprocess.CompletedProcess[str]":
        """Run a command of the command line to its end."""
        argv = [sys.executable, "-m", "freehold.cli.main", *words]
        return subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, timeout=PROCESS_TIMEOUT, check=check
        )

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start a command of the command line."""
        argv = [sys.executable, "-m", "freehold.cli.main", *words]
        return subprocess.Popen(argv, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def make_sign_in_link(self) -> str:
        """A fresh link, as `freehold open --print` makes it, without the cost of a process."""
        with SignIns(self.home.identity, owner=None) as sign_ins:
            return f"{self.pages}/sign-in#{sign_ins.create_link()}"

    def call(self, call: TypedCall[Reply]) -> Reply:
        """Call the keeper over its socket."""
        return call_keeper(self.home, call)

    def status(self) -> KeeperStatus:
        return self.call(GetKeeperStatus())

    def programs(self) -> dict[str, ProgramStatus]:
        return {program.name: program for program in self.status().programs}

    def pid_of(self, program: str) -> int:
        pid = self.programs()[program].pid
        assert isinstance(pid, int)
        return pid


class KeeperProcess:
    """One run of a keeper, and the events that it reports."""

    def __init__(self, harness: FreeholdHarness, module: str, options: tuple[str, ...] = ()) -> None:
        self.harness = harness
        self._reading, writing = os.pipe()
        self._error_output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, "--home", str(harness.home.root), "--report", str(writing), *options],
            env=harness.environment,
            pass_fds=[writing],
            cwd=ROOT,
            stderr=self._error_output,
        )
        os.close(writing)
        self._left = b""

    def next(self, *wanted: str) -> dict[str, Any]:
        """The next event of these kinds; fails when the keeper ends or takes too long."""
        deadline = time.monotonic() + PROCESS_TIMEOUT
        while True:
            line, found, rest = self._left.partition(b"\n")
            if found:
                self._left = rest
                event: dict[str, Any] = json.loads(line)
                if event["event"] in wanted:
                    return event
                assert event["event"] != "not-ready", f"the keeper did not get ready: {event}"
                continue
            ready, _, _ = select.select([self._reading], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self._reading, 65536) if ready else b""
            if not data:
                raise AssertionError(f"no {wanted} from the keeper; its error output is {self.error_output()!r}")
            self._left += data

    def error_output(self) -> str:
        """What the keeper has written to its standard error."""
        self._error_output.seek(0)
        return self._error_output.read().decode()

    def pid_of(self, program: str) -> int:
        return self.harness.pid_of(program)

    def family(self) -> list[int]:
        """Everything that descends from the keeper."""
        return list(find_descendants(self.process.pid))

    def kill(self) -> None:
        """SIGKILL, and wait until all its descendants have ended."""
        watched = []
        for pid in self.family():
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile by itself
                watched.append(os.pidfd_open(pid))
        self.process.kill()
        self.process.wait()
        for descriptor in watched:
            assert select.select([descriptor], [], [], PROCESS_TIMEOUT)[0], "a child has outlived its keeper"
            os.close(descriptor)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PROCESS_TIMEOUT)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._error_output.close()
        os.close(self._reading)
