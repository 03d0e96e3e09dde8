"""The Freehold of a soak: a small disk of its own, a clock of its own, and `freehold up` as an owner starts it."""

import asyncio
import json
import os
import select
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.freehold import ROOT, FreeholdHarness
from tests.support.processes import find_descendants

from freehold.agents.catalogue.installation import install_agent
from freehold.agents.catalogue.registry import find_agent
from freehold.identity.tokens import ApiTokens, Scope
from freehold.manifest.model import Manifest

DISK_SIZE = "400M"
START_DEADLINE = 120.0
ORPHAN_DEADLINE = 20.0
MARKS = {
    "gateway": "-m freehold.gateway",
    "ssh": "-m freehold.ssh",
    "sandbox": "/bwrap ",
    "guest": "guest.pyz",
    "agent": "freehold.builtin",
    "orphan guard": "/bin/sh -c",
}
"""How each kind of process is known by its command line. The first that fits counts."""

SCOPES: tuple[Scope, ...] = ("read", "prompt", "files", "history", "admin")


class SoakStand:
    def __init__(self, folder: Path, model_url: str, *, own_disk: bool) -> None:
        self.disk = folder / "disk"
        self.own_disk = own_disk
        self._clock = folder / "clock"
        self.set_clock(0.0)
        self.harness = FreeholdHarness(
            self.disk, FREEHOLD_SSH_ENABLED="true", SOAK_CLOCK_OFFSET=str(self._clock), TMPDIR=str(folder)
        )
        clock = ROOT / "tests" / "soak" / "clock"
        self.harness.environment["PYTHONPATH"] = f"{clock}:{self.harness.environment['PYTHONPATH']}"
        self.home = self.harness.home
        self.home.root.mkdir(parents=True, mode=0o700)
        self.home.manifest.write_text(f'[models.scripted]\nbase_url = "{model_url}/v1"\nmodel = "scripted"\n')
        install_agent(self.home, find_agent(Manifest(), "builtin"))
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._last_lines: deque[str] = deque(maxlen=20)

    def create_token(self) -> str:
        with ApiTokens(self.home.identity, owner=None) as tokens:
            return tokens.create("soak", SCOPES, None)[1]

    def set_clock(self, offset: float) -> None:
        """Move the wall clock of every program by so many seconds. They read it from this file whenever they look."""
        with self._clock.open("r+b" if self._clock.exists() else "wb", buffering=0) as file:
            file.write(struct.pack("d", offset))

    @property
    def keeper(self) -> int:
        assert self._process is not None
        return self._process.pid

    def find_processes(self, kind: str) -> list[int]:
        """The processes of this kind now. A keeper has no others of its kind."""
        if kind == "keeper":
            return [self.keeper]
        found = []
        for pid, command in find_descendants(self.keeper).items():
            if next((name for name, mark in MARKS.items() if mark in command), "") == kind:
                found.append(pid)
        return found

    async def start(self) -> str | None:
        """`freehold up`. Returns what was wrong when it does not get ready."""
        self._last_lines.clear()
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "freehold.cli.main", "up", "--json"),
            env=self.harness.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        ready = asyncio.get_running_loop().create_future()
        self._reader = asyncio.create_task(self._read_events(process, ready))
        done, _ = await asyncio.wait([ready], timeout=START_DEADLINE)
        if not done:
            return f"freehold up said nothing for {START_DEADLINE:g} s: {list(self._last_lines)}"
        event = str(ready.result())
        return None if event == "ready" else f"freehold up: {event}: {list(self._last_lines)}"

    async def _read_events(self, process: asyncio.subprocess.Process, ready: "asyncio.Future[str]") -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            text = line.decode(errors="replace").strip()
            self._last_lines.append(text[:300])
            with suppress(ValueError, KeyError, TypeError):
                event = json.loads(text)["event"]
                if event in ("ready", "not-ready") and not ready.done():
                    ready.set_result(event)
        if not ready.done():
            ready.set_result(f"ended with {await process.wait()}")

    async def kill_keeper(self) -> list[str]:
        """SIGKILL. Returns the processes that are still there long after it."""
        assert self._process is not None
        assert self._reader is not None
        watched = {}
        for pid, command in find_descendants(self.keeper).items():
            with suppress(ProcessLookupError):  # it has ended since
                watched[os.pidfd_open(pid)] = command
        self._process.kill()
        await self._process.wait()
        left = []
        for descriptor, command in watched.items():
            if not await asyncio.to_thread(_wait_ended, descriptor):
                left.append(command[:100])
            os.close(descriptor)
        await self._reader
        return left

    async def stop(self) -> int:
        """Ctrl-C. Returns the exit code."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.terminate()
        return await self._process.wait()

    async def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of the command line to its end."""
        return await asyncio.to_thread(self.harness.run, *words)


def _wait_ended(descriptor: int) -> bool:
    """Whether the process of a pidfd ends before its deadline."""
    return bool(select.select([descriptor], [], [], ORPHAN_DEADLINE)[0])


@contextmanager
def make_folder(*, own_disk: bool) -> Iterator[Path]:
    """A folder whose `disk` is small. Mounting needs root; the mount is seen by nobody else."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    disk = folder / "disk"
    disk.mkdir()
    if own_disk:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs", disk], check=True)
    try:
        yield folder
    finally:
        if own_disk:
            subprocess.run(["umount", "-l", disk], check=True)
        shutil.rmtree(folder, ignore_errors=True)
