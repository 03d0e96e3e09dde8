"""The history commands with no keeper running: undo needs nothing else."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from freehold.cli.main import freehold_command
from freehold.errors import FreeholdError
from freehold.history import Author, History, HistorySettings
from freehold.home import Home, find_home
from freehold.timeline import Timeline


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = find_home(tmp_path / "home")
    found.workspace.mkdir(parents=True)
    found.agent_home.mkdir()
    with History(
        found.history, {"workspace": found.workspace, "home": found.agent_home}, HistorySettings(quiet=0)
    ) as history:
        history.snapshot(why="first")
        (found.workspace / "app.py").write_text("one\ntwo\nthree\n")
        history.snapshot("turn", Author("agent", agent="claude", turn="1", prompt="write it"), "write it")
        (found.workspace / "app.py").write_text("one\n2\nthree\n")
        (found.workspace / "logo.png").write_bytes(b"\x89PNG\0\1")
        history.snapshot("turn", Author("agent", agent="claude", turn="2", prompt="change it"), "change it")
    return found


def run(home: Home, *words: str) -> Result:
    return CliRunner().invoke(freehold_command, [*words, "--home", str(home.root)])


def run_ok(home: Home, *words: str) -> str:
    result = run(home, *words)
    assert result.exit_code == 0, result.output or result.exception
    return result.output


def test_the_log_shows_who_why_and_how_much(home: Home) -> None:
    lines = run_ok(home, "log").splitlines()
    assert len(lines) == 3
    assert "claude turn 2" in lines[0]
    assert "change it" in lines[0]
    assert "+1 ~1 lines +1 -1" in lines[0]
    assert len(run_ok(home, "log", "workspace/logo.png").splitlines()) == 1
    assert len(run_ok(home, "log", "workspace/app.py").splitlines()) == 2


def test_a_state_that_was_recorded_in_the_middle_of_a_turn_keeps_its_prompt(home: Home) -> None:
    turn = Author("agent", agent="claude", session="s", turn="3", prompt="rename it")
    with History(
        home.history, {"workspace": home.workspace, "home": home.agent_home}, HistorySettings(quiet=0)
    ) as history:
        history.mark("before", "turn", turn, "rename it")
        (home.workspace / "app.py").rename(home.workspace / "main.py")
        history.snapshot(why="found before a comparison")
        history.mark("after", "turn", turn, "rename it")
    newest = run_ok(home, "log").splitlines()[0]
    assert "claude turn 3" in newest
    assert "rename it" in newest


def test_a_dry_run_lists_every_path_and_undo_and_redo_restore_them(home: Home) -> None:
    shown = run_ok(home, "undo", "--dry-run")
    assert "restore       workspace/app.py" in shown
    assert "remove        workspace/logo.png" in shown
    assert "1 to restore, 1 to remove." in shown
    assert (home.workspace / "logo.png").exists()
    assert "Entry 4: undo of entry 3. 1 restored, 1 removed." in run_ok(home, "undo")
    assert (home.workspace / "app.py").read_text() == "one\ntwo\nthree\n"
    assert not (home.workspace / "logo.png").exists()
    run_ok(home, "redo")
    assert (home.workspace / "logo.png").exists()


def test_undo_of_rm_rf_with_nothing_running(home: Home) -> None:
    shutil.rmtree(home.workspace)
    run_ok(home, "undo")
    assert (home.workspace / "app.py").read_text() == "one\n2\nthree\n"


def test_restore_of_a_path(home: Home) -> None:
    answer = json.loads(run_ok(home, "restore", "2", "workspace/app.py", "--json"))
    assert answer["unsettled"] == []
    assert (home.workspace / "app.py").read_text() == "one\ntwo\nthree\n"
    assert (home.workspace / "logo.png").exists()


def test_revert_shows_conflicts_and_waits_for_a_choice(home: Home) -> None:
    (home.workspace / "app.py").write_text("one\nzwei\nthree\n")
    preview = run(home, "revert", "3", "--dry-run")
    assert preview.exit_code == 1
    assert "choose        workspace/app.py" in preview.output
    refused = run(home, "revert", "3")
    assert isinstance(refused.exception, FreeholdError)
    assert (home.workspace / "logo.png").exists()
    run_ok(home, "revert", "3", "--choose", "workspace/app.py=old")
    assert (home.workspace / "app.py").read_text() == "one\ntwo\nthree\n"
    assert not (home.workspace / "logo.png").exists()
    assert run(home, "revert", "3", "--choose", "both").exit_code == 2


def test_diff_is_unified_binary_aware_and_counts(home: Home) -> None:
    shown = run_ok(home, "diff", "3")
    assert "@@ -1,3 +1,3 @@" in shown
    assert "-two" in shown
    assert "+2" in shown
    assert "logo.png  (binary: nothing → 6 bytes)" in shown
    stat = run_ok(home, "diff", "3", "--stat")
    assert "1 lines added, 1 removed" in stat
    answer = json.loads(run_ok(home, "diff", "3", "workspace/app.py", "--json"))
    assert [each["path"] for each in answer["files"]] == ["workspace/app.py"]


def test_show_prints_the_exact_bytes(home: Home) -> None:
    assert run(home, "show", "3:workspace/logo.png").stdout_bytes == b"\x89PNG\0\1"
    assert run_ok(home, "show", "2:workspace/app.py") == "one\ntwo\nthree\n"
    missing = run(home, "show", "1:workspace/app.py")
    assert isinstance(missing.exception, FreeholdError)
    assert missing.exception.code == "history.unknown-path"


def test_a_file_cannot_send_control_sequences_to_the_terminal(home: Home) -> None:
    (home.workspace / "evil").write_text("\x1b]0;owned\x07\n")
    with History(home.history, {"workspace": home.workspace, "home": home.agent_home}) as history:
        entry = history.snapshot().entry
    assert "\x1b]0" not in run_ok(home, "diff", str(entry))


def test_verify_size_and_collect(home: Home) -> None:
    assert "No damage found" in run_ok(home, "history", "verify")
    assert "3 entries" in run_ok(home, "history", "size")
    assert json.loads(run_ok(home, "history", "collect", "--json"))["dropped"] == 0


def test_a_home_without_history_is_explained(tmp_path: Path) -> None:
    result = run(find_home(tmp_path / "nothing"), "undo")
    assert isinstance(result.exception, FreeholdError)
    assert result.exception.code == "history.empty"


@pytest.mark.parametrize(
    ("ssh", "via", "words"), [("", "command_line", "command line"), ("10.0.0.2 1 10.0.0.1 22", "ssh", "SSH")]
)
@pytest.mark.parametrize(
    ("words_of_verb", "kind"),
    [
        (["undo"], "history.undone"),
        (["restore", "2"], "history.restored"),
        (["revert", "3"], "history.reverted"),
    ],
)
def test_a_command_with_no_keeper_records_who_asked(
    home: Home, monkeypatch: pytest.MonkeyPatch, words_of_verb: list[str], kind: str, ssh: str, via: str, words: str
) -> None:
    monkeypatch.setenv("SSH_CONNECTION", ssh)
    entry = json.loads(run_ok(home, *words_of_verb, "--json"))["entry"]
    assert entry["who"] == {"by": "owner", "via": via}
    assert f"owner ({words})" in run_ok(home, "log").splitlines()[0]
    with Timeline(home.timeline) as timeline:
        event = timeline.tail(1)[0]
    assert (event.kind, event.who) == (kind, "owner")
    assert event.data["asked_by"] == {"by": "owner", "via": via}
    assert event.data["entry"] == entry["id"]


def test_a_redo_with_no_keeper_records_who_asked(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    run_ok(home, "undo")
    run_ok(home, "redo")
    assert "owner (command line)" in run_ok(home, "log").splitlines()[0]
    with Timeline(home.timeline) as timeline:
        assert [event.kind for event in timeline.tail(2)] == ["history.undone", "history.redone"]


def test_an_undo_works_when_the_timeline_cannot_be_written(home: Home) -> None:
    home.timeline.write_bytes(b"not a database " * 100)
    result = run(home, "undo")
    assert result.exit_code == 0
    assert "was not added to the timeline" in result.output
    assert not (home.workspace / "logo.png").exists()


def test_the_commands_do_not_load_the_store_before_they_need_it() -> None:
    import subprocess

    heavy = "{'freehold.history.history', 'freehold.timeline', 'sqlite3', 'blake3'}"
    code = f"import sys; import freehold.cli.undo; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
