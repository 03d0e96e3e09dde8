"""An unexpected error is one line with an id. The traceback is in the log, and printed with FREEHOLD_DEBUG=1."""

import os
import re
import subprocess
import sys
from pathlib import Path

BROKEN = """
import freehold.cli.version as version
from freehold.cli import main, _options
import click

@click.command()
@_options.home_option
def command(home):
    raise KeyError("no such thing, token fh_0123456789abcdefghijklmnopqrstuv")

version.command = command
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


def test_it_prints_one_line_and_the_log_has_the_traceback_under_the_id(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "logs").mkdir(parents=True)
    done = run_broken(home)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr + done.stdout
    assert "KeyError" in done.stderr
    (error_id,) = re.findall(r"\(id ([0-9a-f]{12})\)", done.stderr)
    shown = subprocess.run(
        [sys.executable, "-m", "freehold.cli.main", "logs", "cli", "--home", str(home)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert error_id in shown
    assert "Traceback" in shown
    assert "0123456789abcdefghij" not in shown + done.stderr


def test_without_a_home_the_traceback_is_in_a_file_that_only_the_owner_can_read(tmp_path: Path) -> None:
    done = run_broken(tmp_path / "nowhere")
    (name,) = re.findall(r"The details are in (\S+freehold-error-\S+\.log) ", done.stderr)
    assert "Traceback" in Path(name).read_text()
    assert Path(name).stat().st_mode & 0o077 == 0
    assert not (tmp_path / "nowhere").exists()


def test_with_freehold_debug_the_traceback_is_printed(tmp_path: Path) -> None:
    assert "Traceback" in run_broken(tmp_path / "nowhere", FREEHOLD_DEBUG="1").stderr
