"""The end of a test run, whatever way it ends: no process that it started may outlive it."""

import ctypes
import os
import secrets
import signal
import subprocess
import sys

from tests.support.processes import find_descendants

PR_SET_CHILD_SUBREAPER = 36
MARK = "TEST_RUN"
"""An environment variable that every process of one test run inherits."""

GUARD = """
import os, signal, sys, time
mark = sys.argv[1].encode()
os.read(0, 1)
while True:
    found = False
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and mark in open(f"/proc/{name}/environ", "rb").read().split(b"\\0"):
                os.kill(int(name), signal.SIGKILL)
                found = True
        except OSError:
            pass
    if not found:
        break
    time.sleep(0.05)
"""
"""Waits until the test run has ended, which closes its standard input, and kills what is left of it."""

_guard: "subprocess.Popen[bytes] | None" = None


def adopt_orphans() -> None:
    """Make this process the parent of orphans, in the place of init, so that a leak is seen."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start_guard() -> None:
    """Start the process that ends the test run's other processes when this one has ended, even by SIGKILL."""
    global _guard
    environment = dict(os.environ)
    os.environ[MARK] = secrets.token_hex(16)
    # In a session of its own, so that Ctrl-C does not end it as well.
    _guard = subprocess.Popen(
        [sys.executable, "-S", "-c", GUARD, f"{MARK}={os.environ[MARK]}"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def stop_guard() -> None:
    """Let the guard do its work now, and wait for it."""
    if _guard is not None:
        _guard.communicate()


def end_descendants() -> None:
    """Kill everything below this process except the guard, workers of pytest-xdist included."""
    for pid in find_descendants(os.getpid()):
        if _guard is None or pid != _guard.pid:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
