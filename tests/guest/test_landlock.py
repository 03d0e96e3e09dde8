"""Separation on kernels with less of Landlock than this one."""

from pathlib import Path

import pytest

from freehold.computer import Computer
from freehold.computer.walls.landlock import can_separate_sessions
from freehold.guest import kernel, landlock
from freehold.guest.spawn import OperationError

SOURCE = Path(kernel.__file__).read_text()
OLDER = """
import os
import subprocess, tempfile
_FIRST_WITH_SCOPES = 99
other = subprocess.Popen(["sleep", "60"], env={"SECRET": "x"})
open(f"/proc/{other.pid}/environ").close()
enter_landlock_domain(True)
for name in ("environ", "maps", "mem"):
    try:
        open(f"/proc/{other.pid}/{name}").close()
    except PermissionError:
        print("refused")
own = subprocess.Popen(["sleep", "60"])
open(f"/proc/{own.pid}/environ").close()
folder = tempfile.mkdtemp()
os.makedirs(f"{folder}/from")
os.makedirs(f"{folder}/to")
open(f"{folder}/from/file", "w").close()
os.link(f"{folder}/from/file", f"{folder}/to/link")
os.rename(f"{folder}/from/file", f"{folder}/to/file")
for child in (own, other):
    child.kill()
    child.wait()
print("moved")
"""


@pytest.mark.skipif(not can_separate_sessions(), reason="this kernel has no Landlock: freehold doctor says so")
async def test_without_scopes_processes_are_separated_and_files_can_be_moved() -> None:
    """Linux 5.19 to 6.11: the domain handles only one right, and allows it everywhere."""
    async with Computer.start() as computer:
        ran = await computer.run(["/usr/bin/python3", "-c", SOURCE + OLDER], timeout=30)
    assert ran.text.split() == ["refused", "refused", "refused", "moved"], ran


def test_without_landlock_everything_starts_without_separation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "has_landlock", lambda: False)
    together = landlock.LandlockDomains()
    assert together.run_in(b"one", lambda: 7) == 7
    assert together.run_in(landlock.OWNER, lambda: 8) == 8


def test_nothing_starts_if_its_domain_cannot_be_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that must be separated is never started without separation."""

    def fail(strictly: bool) -> None:
        if strictly:
            raise OSError("no more domains")

    monkeypatch.setattr(landlock, "has_landlock", lambda: True)
    monkeypatch.setattr(landlock, "enter_landlock_domain", fail)
    apart = landlock.LandlockDomains()
    started: list[int] = []

    def start() -> int:
        started.append(1)
        return 1

    with pytest.raises(OperationError, match="no more domains"):
        apart.run_in(b"one", start)
    assert started == []
    assert apart.run_in(landlock.OWNER, lambda: 8) == 8
    assert apart.owner is not None
    apart.owner.leave()
