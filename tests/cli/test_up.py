"""`freehold up` on the command line: in the foreground with Ctrl-C, in the background, and a second time."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.freehold import PROCESS_TIMEOUT, FreeholdHarness

from freehold.keeper.lock import read_lock_holder


def test_in_the_foreground_it_prints_a_summary_and_ctrl_c_stops_it(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "freehold.cli.main", "up"],
        env=harness.environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    )
    os.close(theirs)
    shown = b""
    while b"Ctrl-C" not in shown:
        shown += os.read(ours, 4096)
    os.write(ours, b"\x03")  # the terminal turns it into a signal, as for a person
    try:
        while data := os.read(ours, 4096):
            shown += data
    except OSError:
        pass  # the other side is closed
    os.close(ours)
    text = shown.decode()
    assert process.wait(PROCESS_TIMEOUT) == 0, text
    for words in (
        f"http://freehold.localhost:{harness.gateway_port}/sign-in#",
        "bubblewrap",
        str(harness.home.root),
        "Ctrl-C",
        "Stopped.",
    ):
        assert words in text
    assert "Traceback" not in text


def test_in_the_background_it_returns_when_ready_and_down_stops_it(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    up = harness.run("up", "-d", "--json")
    assert up.returncode == 0, up.stderr
    events = [json.loads(line) for line in up.stdout.splitlines()]
    assert events[-1]["event"] == "ready"
    assert [event["stage"] for event in events if event["event"] == "stage"][-1] == "seal"
    holder = read_lock_holder(harness.home)
    assert holder is not None

    again = harness.run("up")
    assert again.returncode == 1
    assert f"pid {holder.pid}" in again.stderr
    assert "freehold down" in again.stderr

    down = harness.run("down")
    assert (down.returncode, down.stdout) == (0, "Stopped.\n")
    assert harness.run("down").stdout == "Freehold is not running.\n"


def test_a_failed_boot_in_the_background_prints_the_reason(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    harness.home.root.mkdir(mode=0o700)
    harness.home.manifest.write_text("[gateway\n")
    for words in (("up",), ("up", "-d")):
        done = harness.run(*words)
        assert done.returncode == 1
        assert "freehold.toml:1" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_second_ctrl_c_does_not_wait_and_leaves_no_traceback(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "freehold.cli.main", "up", "--json"],
        env=harness.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] == "ready":
            break
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PROCESS_TIMEOUT)
    assert process.returncode == 0
    assert "Traceback" not in errors
