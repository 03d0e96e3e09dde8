"""The `freehold` command for inside: whole or as it was, and never a reason not to start."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from freehold.agents.tools.placing import place_command

TOOL = {
    "name": "say_it",
    "description": "Says it",
    "inputSchema": {
        "type": "object",
        "properties": {"words": {"type": "string"}, "times": {"type": "integer"}},
        "required": ["words"],
    },
}


def test_the_command_is_made_from_the_schemas(tmp_path: Path) -> None:
    place_command(tmp_path, [TOOL])
    command = tmp_path / ".tools" / "freehold"
    assert command.stat().st_mode & 0o777 == 0o755
    assert json.loads((tmp_path / ".tools/tools.json").read_text()) == [TOOL]
    words = [sys.executable, str(command), "say-it"]
    missing = subprocess.run(words, capture_output=True, text=True)
    assert (missing.returncode, "--words" in missing.stderr) == (2, True)
    wrong = subprocess.run([*words, "--words", "x", "--times", "many"], capture_output=True, text=True)
    assert "invalid int value" in wrong.stderr


def test_a_second_time_writes_nothing(tmp_path: Path) -> None:
    place_command(tmp_path, [TOOL])
    before = (tmp_path / ".tools/freehold").stat()
    place_command(tmp_path, [TOOL])
    assert (tmp_path / ".tools/freehold").stat().st_ino == before.st_ino


def test_a_place_that_takes_no_files_is_told_and_no_more(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / ".tools").write_text("in the way")
    place_command(tmp_path, [TOOL])
    assert "could not be written" in caplog.text
