"""`freehold logs` reads the files, so it works with everything down, and obeys nothing that programs wrote."""

import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.keeper.running import Stead

from freehold.keeper.logbook import Logbook
from freehold.keeper.settings import LogLimits

NOON = 1_800_000_000.0


def fill(stead: Stead, *lines: tuple[str, bytes, float]) -> None:
    stead.home.logs.mkdir(parents=True, exist_ok=True)
    for program, line, moment in lines:
        with Logbook(stead.home.logs, LogLimits(), partial(float, moment)) as book:
            book.write(program, "stdout", line)


def test_all_programs_are_merged_and_one_can_be_chosen(tmp_path: Path) -> None:
    stead = Stead(tmp_path)
    fill(stead, ("gateway", b"first", NOON), ("keeper", b"second", NOON + 1), ("gateway", b"third", NOON + 2))
    everything = stead.run("logs").stdout
    assert [word for word in ("first", "second", "third") if word in everything] == ["first", "second", "third"]
    assert everything.index("first") < everything.index("second") < everything.index("third")
    assert "second" not in stead.run("logs", "gateway").stdout
    assert "first" not in stead.run("logs", "-n", "2").stdout
    unknown = stead.run("logs", "gatewya")
    assert unknown.returncode == 1
    assert "gateway, keeper" in unknown.stderr


def test_escape_sequences_do_not_reach_the_terminal(tmp_path: Path) -> None:
    stead = Stead(tmp_path)
    fill(stead, ("gateway", b"\x1b]0;pwned\x07\x1b[2Jhello", NOON))
    shown = stead.run("logs").stdout
    assert "hello" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_following_shows_what_comes(tmp_path: Path) -> None:
    stead = Stead(tmp_path)
    fill(stead, ("gateway", b"old", NOON))
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "freehold.cli.main", "logs", "-f"],
        env=stead.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().rstrip().endswith("old")
        fill(stead, ("gateway", b"new", NOON + 1), ("computer", b"another program's", NOON + 2))
        assert process.stdout.readline().rstrip().endswith("new")
        assert process.stdout.readline().rstrip().endswith("another program's")
    finally:
        process.terminate()
        process.communicate()


def test_nothing_to_show_is_said(tmp_path: Path) -> None:
    stead = Stead(tmp_path)
    assert str(stead.home.logs) in stead.run("logs").stderr
    fill(stead, ("gateway", b"old", NOON))
    told = stead.run("logs", "--since", "2999-01-01T00:00")
    assert (told.returncode, told.stdout) == (0, "")
    assert "since then" in told.stderr
