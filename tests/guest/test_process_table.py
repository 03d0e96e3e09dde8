"""The process table, and killing a command with everything it started."""

import os
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.condition import DEADLINE

from freehold.guest.process_table import ProcessInfo, kill_tree, list_processes, read_command_line
from freehold.guest.spawn import MARKER

# Double-forks into a Unix session of its own, and reports its pid.
DAEMON = "setsid sh -c 'echo $$ > {report}; exec sleep 1000' >/dev/null 2>&1 & while [ ! -s {report} ]; do sleep 0.01; done; echo ready; exec sleep 1000"


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def wait_gone(pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], DEADLINE)[0], f"{pid} still runs"
    finally:
        os.close(descriptor)


def test_a_process_is_listed_with_its_parent_session_and_command(bystander: subprocess.Popen[bytes]) -> None:
    found = {one.pid: one for one in list_processes()}[bystander.pid]
    assert found.name == "sleep"
    assert found.parent == os.getpid()
    assert found.session == bystander.pid
    assert found.threads == 1
    assert found.memory > 0
    assert read_command_line(bystander.pid) == ["sleep", "1000"]
    assert os.getpid() not in {one.pid for one in list_processes()}


@pytest.mark.parametrize("name", [b"plain", b"with space", b"a) R 1 1 (b", b"\xff\n"])
def test_a_process_name_cannot_confuse_the_table(name: bytes) -> None:
    """A program chooses its own name, which stands in the middle of the line."""
    numbers = b" ".join(str(number).encode() for number in range(4, 53))
    info = ProcessInfo(7, b"7 (" + name + b") S 4242 " + numbers + b"\n")
    assert (info.name, info.state, info.parent) == (os.fsdecode(name), "S", 4242)


def test_a_killed_command_takes_its_daemons_along(tmp_path: Path, bystander: subprocess.Popen[bytes]) -> None:
    report = tmp_path / "pid"
    command = subprocess.Popen(
        ["sh", "-c", DAEMON.format(report=report)],
        start_new_session=True,
        stdout=subprocess.PIPE,
        env={**os.environ, MARKER.decode(): "test-42"},
    )
    assert command.stdout is not None
    assert command.stdout.readline() == b"ready\n"
    daemon = int(report.read_text())
    kill_tree(command.pid, b"test-42")
    command.wait()
    command.stdout.close()
    wait_gone(daemon)
    assert bystander.poll() is None


def test_killing_what_is_gone_harms_nobody(bystander: subprocess.Popen[bytes]) -> None:
    ended = subprocess.Popen(["true"], start_new_session=True)
    ended.wait()
    kill_tree(ended.pid, b"no-such-marker")
    assert bystander.poll() is None
