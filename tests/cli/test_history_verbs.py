"""The verbs about files, tried as an owner would, with no keeper running: undo needs nothing."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from freehold.cli.main import freehold_command
from freehold.errors import FreeholdError
from freehold.history import History, Settings, Who
from freehold.home import Home, find_home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = find_home(tmp_path / "home")
    found.workspace.mkdir(parents=True)
    found.agent_home.mkdir()
    with History(found.history, {"workspace": found.workspace, "home": found.agent_home}, Settings(quiet=0)) as history:
        history.snapshot(why="first")
        (found.workspace / "app.py").write_text("one\ntwo\nthree\n")
        history.snapshot("turn", Who("agent", agent="claude", turn="1", prompt="write it"), "write it")
        (found.workspace / "app.py").write_text("one\n2\nthree\n")
        (found.workspace / "logo.png").write_bytes(b"\x89PNG\0\1")
        history.snapshot("turn", Who("agent", agent="claude", turn="2", prompt="change it"), "change it")
    return found


def run(home: Home, *words: str) -> Result:
    return CliRunner().invoke(freehold_command, [*words, "--home", str(home.root)])


def good(home: Home, *words: str) -> str:
    result = run(home, *words)
    assert result.exit_code == 0, result.output or result.exception
    return result.output


def test_the_log_says_who_why_and_how_much(home: Home) -> None:
    lines = good(home, "log").splitlines()
    assert len(lines) == 3
    assert "claude turn 2" in lines[0]
    assert "change it" in lines[0]
    assert "+1 ~1 lines +1 -1" in lines[0]
    assert len(good(home, "log", "workspace/logo.png").splitlines()) == 1
    assert len(good(home, "log", "workspace/app.py").splitlines()) == 2


def test_a_dry_run_names_every_path_and_undo_and_redo_go_back_and_forth(home: Home) -> None:
    shown = good(home, "undo", "--dry-run")
    assert "write   workspace/app.py" in shown
    assert "remove  workspace/logo.png" in shown
    assert (home.workspace / "logo.png").exists()
    assert "undo of entry 3; " in good(home, "undo")
    assert (home.workspace / "app.py").read_text() == "one\ntwo\nthree\n"
    assert not (home.workspace / "logo.png").exists()
    good(home, "redo")
    assert (home.workspace / "logo.png").exists()


def test_undo_of_rm_rf_with_nothing_running(home: Home) -> None:
    shutil.rmtree(home.workspace)
    good(home, "undo")
    assert (home.workspace / "app.py").read_text() == "one\n2\nthree\n"


def test_restore_of_a_path(home: Home) -> None:
    answer = json.loads(good(home, "restore", "2", "workspace/app.py", "--json"))
    assert answer["unsettled"] == []
    assert (home.workspace / "app.py").read_text() == "one\ntwo\nthree\n"
    assert (home.workspace / "logo.png").exists()


def test_revert_shows_conflicts_and_waits_for_a_choice(home: Home) -> None:
    (home.workspace / "app.py").write_text("one\nzwei\nthree\n")
    preview = run(home, "revert", "3", "--dry-run")
    assert preview.exit_code == 1
    assert "choose  workspace/app.py" in preview.output
    refused = run(home, "revert", "3")
    assert isinstance(refused.exception, FreeholdError)
    assert (home.workspace / "logo.png").exists()
    good(home, "revert", "3", "--choose", "workspace/app.py=old")
    assert (home.workspace / "app.py").read_text() == "one\ntwo\nthree\n"
    assert not (home.workspace / "logo.png").exists()
    assert run(home, "revert", "3", "--choose", "both").exit_code == 2


def test_diff_is_unified_binary_aware_and_counts(home: Home) -> None:
    shown = good(home, "diff", "3")
    assert "@@ -1,3 +1,3 @@" in shown
    assert "-two" in shown
    assert "+2" in shown
    assert "logo.png  (binary: nothing → 6 bytes)" in shown
    stat = good(home, "diff", "3", "--stat")
    assert "1 lines added, 1 removed" in stat
    answer = json.loads(good(home, "diff", "3", "workspace/app.py", "--json"))
    assert [each["path"] for each in answer["files"]] == ["workspace/app.py"]


def test_show_prints_the_very_bytes(home: Home) -> None:
    assert run(home, "show", "3:workspace/logo.png").stdout_bytes == b"\x89PNG\0\1"
    assert good(home, "show", "2:workspace/app.py") == "one\ntwo\nthree\n"
    missing = run(home, "show", "1:workspace/app.py")
    assert isinstance(missing.exception, FreeholdError)
    assert missing.exception.code == "history.unknown-path"


def test_a_file_cannot_send_control_sequences_to_the_terminal(home: Home) -> None:
    (home.workspace / "evil").write_text("\x1b]0;owned\x07\n")
    with History(home.history, {"workspace": home.workspace, "home": home.agent_home}) as history:
        entry = history.snapshot().entry
    assert "\x1b]0" not in good(home, "diff", str(entry))


def test_verify_size_and_collect(home: Home) -> None:
    assert "Nothing is damaged" in good(home, "history", "verify")
    assert "3 entries" in good(home, "history", "size")
    assert json.loads(good(home, "history", "collect", "--json"))["dropped"] == 0


def test_a_home_without_history_is_explained(tmp_path: Path) -> None:
    result = run(find_home(tmp_path / "nothing"), "undo")
    assert isinstance(result.exception, FreeholdError)
    assert result.exception.code == "history.empty"


def test_the_verbs_do_not_pay_for_the_history_before_they_need_it() -> None:
    import subprocess

    code = "import sys; import freehold.cli.undo; sys.exit('freehold.history' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
