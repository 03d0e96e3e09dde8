"""Shared by all tests: no test may leave a process behind."""

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PR_SET_CHILD_SUBREAPER = 36


def pytest_configure() -> None:
    # Orphans come to us instead of to init, so that a leak can be seen and named.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _descendants() -> dict[int, str]:
    """Every living process below this one, with its command line; zombies of ours are reaped on the way."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            state, parent = stat[stat.rindex(")") + 2 :].split()[:2]
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    found: dict[int, str] = {}
    frontier = {os.getpid()}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier}
        for pid in frontier:
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            found[pid] = command.strip()
    return found


def _leaked(before: dict[int, str], patience: float) -> dict[int, str]:
    deadline = time.monotonic() + patience
    while True:
        left = {pid: command for pid, command in _descendants().items() if pid not in before and command}
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def no_process_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaves a process running, and ends that process so that it harms no other test."""
    before = _descendants()
    yield
    if request.node.get_closest_marker("shared_processes"):
        return
    left = _leaked(before, patience=10.0)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    assert not left, f"processes left behind: {left}"
