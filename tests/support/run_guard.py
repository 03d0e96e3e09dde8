"""The end of a test run. However it ends, no process that it started lives on."""

import ctypes
import os
import secrets
import signal
import subprocess
import sys
import threading
from types import FrameType

from tests.support.processes import find_descendants

PR_SET_CHILD_SUBREAPER = 36
GRACE = 5.0
"""How long an interrupted run may take to print its report, in seconds."""
INTERRUPTED = 130
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
"""Waits until its standard input is closed, which the end of the test run does, and kills what is left of the run."""

_guard: "subprocess.Popen[bytes] | None" = None


def adopt_orphans() -> None:
    """Make this process the parent of orphans, in the place of init, so that a leak is seen."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start_guard() -> None:
    """Start the process that kills what is left when this one has ended, even if SIGKILL ended it."""
    global _guard
    environment = dict(os.environ)
    os.environ[MARK] = secrets.token_hex(16)
    _guard = subprocess.Popen(
        [sys.executable, "-S", "-c", GUARD, f"{MARK}={os.environ[MARK]}"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C must not end it
    )


def stop_guard() -> None:
    """Let the guard do its work now, and wait for it."""
    if _guard is not None:
        _guard.communicate()


def end_on_signals() -> None:
    """SIGINT and SIGTERM end this process and everything below it, pytest-xdist's workers included, within seconds."""
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: os._exit(INTERRUPTED))
    # What is torn down now talks to processes that are dead, and may wait for their answers.
    timer = threading.Timer(GRACE, os._exit, [INTERRUPTED])
    timer.daemon = True
    timer.start()
    for pid in find_descendants(os.getpid()):
        if _guard is None or pid != _guard.pid:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
    raise KeyboardInterrupt
