"""The test run itself: a test that hangs fails with stacks, and an interrupted run leaves no process."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.condition import wait_until

ROOT = Path(__file__).parents[1]
CONFTEST = "from tests.support.hooks import pytest_configure, pytest_timeout_set_timer, pytest_unconfigure\n"
PLUGINS = ["-p", "xdist", "-p", "timeout", "-p", "asyncio"]
HANG_TIMEOUT = 2
"""Seconds. A test that works must end within them, and one that hangs must have come to where it hangs."""
HANGING = """
import asyncio, threading
import pytest

def hang_here():
    threading.Event().wait()

async def wait_here():
    await asyncio.Event().wait()

def test_sync():
    hang_here()

async def test_async():
    async with asyncio.TaskGroup() as group:
        group.create_task(wait_here(), name="waiter")

@pytest.fixture
def stuck():
    hang_here()

def test_fixture(stuck):
    pass

@pytest.fixture
def stuck_at_the_end():
    yield
    hang_here()

def test_teardown(stuck_at_the_end):
    pass

def test_thread():
    thread = threading.Thread(target=hang_here, name="stuck thread", daemon=True)
    thread.start()
    thread.join()

def test_that_works():
    pass
"""
BUSY = """
import asyncio, os, pathlib, subprocess, sys, threading
import pytest

PROGRAM = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print(1, flush=True); time.sleep(1000)"

def start():
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, start_new_session=True)
    process.stdout.readline()
    pathlib.Path(f"started-{process.pid}").touch()

def test_sync():
    start()
    threading.Event().wait()

async def test_async():
    start()
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.Event().wait()
"""


@contextmanager
def start_pytest(folder: Path, source: str, *options: str) -> Iterator["subprocess.Popen[str]"]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(source)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PLUGINS, *options],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "RUN_OF": str(folder),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as run:
        try:
            yield run
        finally:
            run.kill()


@pytest.mark.parametrize("workers", ["0", "2"])
def test_every_kind_of_hang_ends_with_stacks(tmp_path: Path, workers: str) -> None:
    with start_pytest(tmp_path, HANGING, "-n", workers, f"--timeout={HANG_TIMEOUT}") as run:
        output, _ = run.communicate()
    assert "3 failed, 2 passed, 2 errors" in output
    for test in ("sync", "async", "fixture", "teardown", "thread"):
        assert f"test_{test} has run for {HANG_TIMEOUT} s" in output
    assert "== task waiter" in output
    assert "== thread stuck thread" in output
    assert len(re.findall("in hang_here", output)) >= 4
    assert "in wait_here" in output


def processes_of(folder: Path) -> list[int]:
    mark = f"RUN_OF={folder}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("number", "whole_group"),
    [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGKILL, False)],
    ids=["ctrl-c", "SIGTERM", "SIGKILL"],
)
def test_an_interrupted_run_leaves_no_process(tmp_path: Path, number: signal.Signals, whole_group: bool) -> None:
    """Neither a worker, nor what a test started, even if that ignores Ctrl-C and the test does not end when cancelled."""
    with start_pytest(tmp_path, BUSY, "-n", "2") as run:
        wait_until(lambda: len(list(tmp_path.glob("started-*"))) == 2)
        (os.killpg if whole_group else os.kill)(run.pid, number)
        run.communicate()
    assert run.returncode == (-signal.SIGKILL if number == signal.SIGKILL else pytest.ExitCode.INTERRUPTED)
    wait_until(lambda: processes_of(tmp_path) == [])
