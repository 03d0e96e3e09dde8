"""A test that hangs fails at its time limit, with the stacks of all threads and tasks, and the others go on."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HANGING = """
import asyncio, threading
import pytest, pytest_asyncio

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


@pytest.mark.parametrize("workers", ["0", "2"])
def test_every_kind_of_hang_ends_with_stacks(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_hanging.py").write_text(HANGING)
    (tmp_path / "conftest.py").write_text(
        "import pytest\nfrom tests.support import stacks\n\n\n"
        "@pytest.hookimpl(tryfirst=True)\ndef pytest_timeout_set_timer(item, settings):\n"
        "    return stacks.set_timer(item, settings.timeout)\n"
    )
    argv = [sys.executable, "-m", "pytest", "-q", "-n", workers, "--timeout=0.5", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*argv, "-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "3 failed, 2 passed, 2 errors" in done.stdout, done.stdout + done.stderr
    for test in ("sync", "async", "fixture", "teardown", "thread"):
        assert f"test_{test} has run for 0.5 s" in done.stdout, done.stdout
    assert "== task waiter" in done.stdout
    assert "== thread stuck thread" in done.stdout
    assert len(re.findall("in hang_here", done.stdout)) >= 4
    assert "in wait_here" in done.stdout
