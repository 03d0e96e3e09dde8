"""The `freehold` command inside the computer: replaced atomically, and a failure never stops the start."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from freehold.agents.tools.command_file import write_command

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
    write_command(tmp_path, [TOOL])
    command = tmp_path / ".tools" / "freehold"
    assert command.stat().st_mode & 0o777 == 0o755
    assert json.loads((tmp_path / ".tools/tools.json").read_text()) == [TOOL]
    words = [sys.executable, str(command), "say-it"]
    missing = subprocess.run(words, capture_output=True, text=True)
    assert (missing.returncode, "--words" in missing.stderr) == (2, True)
    wrong = subprocess.run([*words, "--words", "x", "--times", "many"], capture_output=True, text=True)
    assert "invalid int value" in wrong.stderr


def test_writing_the_same_command_again_changes_nothing(tmp_path: Path) -> None:
    write_command(tmp_path, [TOOL])
    before = (tmp_path / ".tools/freehold").stat()
    write_command(tmp_path, [TOOL])
    assert (tmp_path / ".tools/freehold").stat().st_ino == before.st_ino


def test_a_folder_that_cannot_be_written_is_only_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / ".tools").write_text("in the way")
    write_command(tmp_path, [TOOL])
    assert "could not be written" in caplog.text
