"""`freehold logs` reads the files, so it works when nothing runs, and it replaces control characters."""

import io
import logging
import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.support.freehold import FreeholdHarness

from freehold.gateway.error_responses import unexpected_error
from freehold.keeper.log_writer import LogWriter
from freehold.keeper.settings import LogLimits
from freehold.keeper.wire import error_from_body
from freehold.observe.logs import configure_logging, log_unexpected

NOON = 1_800_000_000.0


def fill(harness: FreeholdHarness, *lines: tuple[str, bytes, float]) -> None:
    harness.home.logs.mkdir(parents=True, exist_ok=True)
    for program, line, moment in lines:
        with LogWriter(harness.home.logs, LogLimits(), partial(float, moment)) as book:
            book.write(program, "stdout", line)


def test_all_programs_are_merged_and_one_can_be_chosen(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    fill(harness, ("gateway", b"first", NOON), ("keeper", b"second", NOON + 1), ("gateway", b"third", NOON + 2))
    everything = harness.run("logs").stdout
    assert [word for word in ("first", "second", "third") if word in everything] == ["first", "second", "third"]
    assert everything.index("first") < everything.index("second") < everything.index("third")
    assert "second" not in harness.run("logs", "gateway").stdout
    assert "first" not in harness.run("logs", "-n", "2").stdout
    unknown = harness.run("logs", "gatewya")
    assert unknown.returncode == 1
    assert "gateway, keeper" in unknown.stderr


def test_escape_sequences_do_not_reach_the_terminal(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    fill(harness, ("gateway", b"\x1b]0;pwned\x07\x1b[2Jhello", NOON))
    shown = harness.run("logs").stdout
    assert "hello" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_following_shows_new_lines(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    fill(harness, ("gateway", b"old", NOON))
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "freehold.cli.main", "logs", "-f"],
        env=harness.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().rstrip().endswith("old")
        fill(harness, ("gateway", b"new", NOON + 1), ("computer", b"another program's", NOON + 2))
        assert process.stdout.readline().rstrip().endswith("new")
        assert process.stdout.readline().rstrip().endswith("another program's")
    finally:
        process.terminate()
        process.communicate()


def test_an_empty_log_is_reported(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    assert str(harness.home.logs) in harness.run("logs").stderr
    fill(harness, ("gateway", b"old", NOON))
    told = harness.run("logs", "--since", "2999-01-01T00:00")
    assert (told.returncode, told.stdout) == (0, "")
    assert "since then" in told.stderr


def test_an_error_is_found_by_its_id(tmp_path: Path) -> None:
    """The gateway answers with the id; its log line has the cause. The keeper writes the id into the message."""
    stream = io.StringIO()
    before = logging.getLogger().handlers[:]
    configure_logging("info", "json", "gateway", stream)
    try:
        try:
            raise ValueError("the cause")
        except ValueError as error:
            error_id = log_unexpected(error, method="GET", path="/v1/me")
    finally:
        logging.getLogger().handlers[:] = before
    harness = FreeholdHarness(tmp_path)
    line = stream.getvalue().encode().rstrip()
    later = [("gateway", b"line %d" % number, NOON + number) for number in range(1, 200)]
    fill(harness, ("gateway", line, NOON), *later, ("keeper", b"history.undo failed [0123456789ab]", NOON))
    hint = unexpected_error(error_id).error.hint
    shown = harness.run(*hint.removeprefix("freehold ").removesuffix(" shows the cause").split()).stdout
    assert error_id in shown
    assert "ValueError: the cause" in shown
    assert "line 1" not in shown
    other = error_from_body({"code": "keeper.bug", "message": "x", "hint": "", "error_id": "0123456789ab"}).hint
    shown = harness.run(*other.removeprefix("freehold ").removesuffix(" shows the cause").split()).stdout
    assert "history.undo failed" in shown
    unknown = harness.run("logs", "gateway", "--error", "ffffffffffff")
    assert (unknown.stdout, unknown.returncode) == ("", 0)
    assert "ffffffffffff" in unknown.stderr
