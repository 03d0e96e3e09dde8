"""Starting children: requests are checked, errors name their cause, limits hold, nothing is inherited."""

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.guest.spawn import MARKER, OperationError, SpawnRequest, start_child

BASE = {b"PATH": b"/usr/bin:/bin", b"KEPT": b"1"}


@pytest.fixture(autouse=True)
def signal_mask() -> Iterator[None]:
    """Starting a child blocks SIGTERM and SIGCHLD, which the guest reads from descriptors."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def request(workspace: Path, **message: Any) -> SpawnRequest:
    return SpawnRequest(message, BASE, os.fsencode(workspace), b"marker-1")


def run(checked: SpawnRequest) -> tuple[int, bytes]:
    """The exit status and stdout of a child."""
    reading, writing = os.pipe()
    null = os.open("/dev/null", os.O_RDWR)
    try:
        pid = start_child(checked, null, writing, null)
    finally:
        os.close(writing)
        os.close(null)
    with os.fdopen(reading, "rb") as output:
        data = output.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), data


def test_a_child_has_the_variables_folder_and_marker_of_its_request(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    checked = request(tmp_path, argv=["sh", "-c", "pwd; env"], cwd="sub", env={"NEW": "x=y", "KEPT": None})
    status, output = run(checked)
    lines = output.decode().splitlines()
    assert status == 0
    assert lines[0] == str(tmp_path / "sub")
    assert "NEW=x=y" in lines
    assert f"{MARKER.decode()}=marker-1" in lines
    assert not [line for line in lines if line.startswith("KEPT=")]


def test_a_child_leads_a_session_and_inherits_no_descriptor(tmp_path: Path) -> None:
    left_open = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(left_open, True)
    try:
        _, output = run(request(tmp_path, argv=["sh", "-c", "ls /proc/self/fd; ps -o sid= -p $$; echo $$"]))
    finally:
        os.close(left_open)
    words = output.split()
    assert words[-1] == words[-2]
    assert str(left_open).encode() not in words[:-2]


def test_limits_hold_in_the_child_and_not_here(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    status, output = run(
        request(tmp_path, argv=["sh", "-c", "ulimit -n; ulimit -Sn 999999 || echo refused"], limits={"open_files": 50})
    )
    assert output.split()[0] == b"50"
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
    assert status in (0, 2)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"argv": ["/nowhere/program"]}, "computer.no-program"),
        ({"argv": ["no-such-program"]}, "computer.no-program"),
        ({"argv": ["/etc/passwd"]}, "computer.no-program"),
        ({"argv": ["true"], "cwd": "/nowhere"}, "computer.bad-folder"),
    ],
)
@pytest.mark.parametrize("terminal", [False, True])
def test_a_child_that_cannot_start_says_why(tmp_path: Path, message: dict[str, Any], code: str, terminal: bool) -> None:
    master, slave = os.openpty()
    try:
        with pytest.raises(OperationError) as caught:
            start_child(request(tmp_path, **message), slave, slave, slave, terminal=terminal)
    finally:
        os.close(master)
        os.close(slave)
    assert caught.value.code == code


ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.lists(st.text(max_size=4), max_size=3)
    | st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2)
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("argv", "cwd", "env", "limits", "apart"), ANYTHING)))
def test_no_request_is_anything_but_accepted_or_refused(message: dict[str, Any]) -> None:
    """The errors that `Guest` turns into a reply; no other kind gets out."""
    try:
        checked = SpawnRequest(message, BASE, b"/workspace", b"m")
    except (OperationError, TypeError, ValueError, KeyError, AttributeError):
        return
    assert all(b"\0" not in word for word in (*checked.arguments, *checked.environment, checked.folder, checked.apart))
