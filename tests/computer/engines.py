"""Real container engines for the tests: started here with folders of their own, ended with the module that uses them."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from freehold.computer.contract.backend import Backend
from freehold.computer.registry import find_backend

START_SECONDS = 60.0
HAS_CGROUPS_V2 = Path("/sys/fs/cgroup/cgroup.controllers").exists()
PROGRAMS = {"docker": "dockerd", "podman": "podman"}


def engine_command(name: str, folder: Path) -> list[str]:
    address = f"unix://{folder}/sock"
    if name == "docker":
        no_network = ["--bridge=none", "--iptables=false", "--ip6tables=false"]
        folders = [f"--data-root={folder}/data", f"--exec-root={folder}/exec", f"--pidfile={folder}/pid"]
        return ["dockerd", *folders, f"--host={address}", *no_network]
    folders = [f"--root={folder}/data", f"--runroot={folder}/run"]
    return [
        "podman",
        *folders,
        "--cgroup-manager=cgroupfs",
        "--runtime=runc",
        "--events-backend=file",
        "system",
        "service",
        "--time=0",
        address,
    ]


class EngineProcess:
    """An engine with folders of its own, which can be killed and started again."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        return f"unix://{self.folder}/sock"

    def start(self) -> None:
        """Return when it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                engine_command(self.name, self.folder), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        _await_answer(self._process, self.folder)

    def kill(self) -> None:
        """As the kernel does when memory is short. Its containers go on."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        # Its containerd dies with it. Until somebody has waited for that, the next engine takes the pid for a live one.
        (self.folder / "exec/containerd/containerd.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            _end_helpers(self.folder)


@contextmanager
def running_engine(name: str, *, may_refuse: bool = False) -> Iterator[Backend]:
    """A backend with its engine. Skips, with the reason, where the engine cannot be had."""
    with engine_process(name, may_refuse=may_refuse) as engine:
        yield find_backend(name, engine.host)


@contextmanager
def engine_process(name: str, *, may_refuse: bool = False) -> Iterator[EngineProcess]:
    """An engine. Skips, with the reason, where it cannot be had.

    With `may_refuse` also where the backend refuses to start a computer, because a wall cannot be built.
    """
    if shutil.which(PROGRAMS[name], path="/usr/sbin:/usr/bin") is None:
        pytest.skip(f"{PROGRAMS[name]} is not installed: the {name} backend was not run")
    if os.geteuid() != 0:
        pytest.skip(f"only root can start {PROGRAMS[name]}: the {name} backend was not run")
    if name == "podman" and not HAS_CGROUPS_V2 and not may_refuse:
        pytest.skip("podman needs control groups v2, and this machine has v1: the podman backend was not run")
    folder = Path(tempfile.mkdtemp(prefix="fh-engine-", dir="/var/tmp"))  # outlives the folders of a test
    folder.chmod(0o755)
    try:
        engine = EngineProcess(name, folder)
        try:
            engine.start()
            yield engine
        finally:
            engine.stop()
    finally:
        _unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _end_helpers(folder: Path) -> None:
    """What an engine that was killed leaves: its containerd, and the helpers of its containers."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(folder).encode() in (process / "cmdline").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)


def _unmount_below(folder: Path) -> None:
    """The files of containers that an engine had no time to unmount. The deepest first."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in sorted((one for one in points if one.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "-l", point], capture_output=True, check=False)


def _await_answer(engine: "subprocess.Popen[bytes]", folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert engine.poll() is None, (folder / "log").read_text()[-2000:]
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(folder / "sock"))
            except OSError:
                time.sleep(0.02)
                continue
            with contextlib.suppress(ConnectionError):
                client.sendall(b"GET /_ping HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n")
                if client.recv(100).startswith(b"HTTP/1.1 200"):
                    return
    raise AssertionError((folder / "log").read_text()[-2000:])
