"""A failure that nobody foresaw is one line and an id; the traceback is in the log, and shown to who asks for it."""

import os
import re
import subprocess
import sys
from pathlib import Path

BROKEN = """
import freehold.cli.version as verb
from freehold.cli import main, _options
import click

@click.command()
@_options.home_option
def command(home):
    raise KeyError("no such thing, token fh_0123456789abcdefghijklmnopqrstuv")

verb.command = command
main.main()
"""


def run_broken(home: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", BROKEN, "version", "--home", str(home)],
        env={**os.environ, "FREEHOLD_DEBUG": "", "TMPDIR": str(home.parent), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_is_one_line_and_the_log_has_the_rest_under_the_id(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "logs").mkdir(parents=True)
    told = run_broken(home)
    assert told.returncode == 1
    assert "Traceback" not in told.stderr + told.stdout
    assert "KeyError" in told.stderr
    (error_id,) = re.findall(r" as ([0-9a-f]{12});", told.stderr)
    shown = subprocess.run(
        [sys.executable, "-m", "freehold.cli.main", "logs", "cli", "--home", str(home)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert error_id in shown
    assert "Traceback" in shown
    assert "0123456789abcdefghij" not in shown + told.stderr


def test_without_a_home_it_is_in_a_file_that_only_the_owner_can_read(tmp_path: Path) -> None:
    told = run_broken(tmp_path / "nowhere")
    (name,) = re.findall(r"(\S+freehold-error-\S+\.log) has it", told.stderr)
    assert "Traceback" in Path(name).read_text()
    assert Path(name).stat().st_mode & 0o077 == 0
    assert not (tmp_path / "nowhere").exists()


def test_who_asks_for_it_sees_it(tmp_path: Path) -> None:
    assert "Traceback" in run_broken(tmp_path / "nowhere", FREEHOLD_DEBUG="1").stderr
