import json
import subprocess
import sys
from pathlib import Path

import pytest

from freehold.agents.sessions.store import SessionStore
from freehold.home import Home
from freehold.timeline import Timeline


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(root=tmp_path, run=tmp_path / "run")


def run(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "freehold.cli.main", "sessions", *words]
    environment = {"FREEHOLD_HOME": str(home.root), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_sessions_are_listed_with_title_agent_state_and_last_change(home: Home) -> None:
    with Timeline(home.timeline) as timeline:
        store = SessionStore(timeline)
        store.prepare()
        first = store.create("claude", "Fix\x1b[31m the tests", None, who="owner")
        second = store.create("codex", "Old work", None, who="owner")
        store.append(first.id, None, [], status="needs_you")
        store.update(second.id, title=None, archived=True, who="owner")
        updated = store.get(first.id).updated
    shown = run(home)
    assert shown.returncode == 0
    assert "\x1b" not in shown.stdout
    (line,) = shown.stdout.splitlines()
    for part in (first.id, "claude", "needs you", updated[:10], "the tests"):
        assert part in line
    (listed,) = json.loads(run(home, "--json").stdout)
    assert (listed["id"], listed["agent"], listed["status"], listed["updated"]) == (
        first.id,
        "claude",
        "needs_you",
        updated,
    )
    assert "Old work" in run(home, "--archived").stdout


def test_a_session_in_which_nothing_was_said_is_not_listed(home: Home) -> None:
    with Timeline(home.timeline) as timeline:
        store = SessionStore(timeline)
        store.prepare()
        store.create("claude", None, None, who="owner")
    assert "There are no sessions." in run(home).stdout
    assert json.loads(run(home, "--json").stdout) == []


def test_without_sessions_the_next_step_is_shown(home: Home) -> None:
    assert "freehold chat" in run(home).stdout
    assert json.loads(run(home, "--json").stdout) == []
    assert not home.timeline.exists()


def test_the_list_names_the_command_for_signed_in_browsers(home: Home) -> None:
    assert "freehold sign-ins" in run(home).stderr
    assert "freehold sign-ins" in run(home, "--json").stderr


@pytest.mark.parametrize("words", [("revoke", "--all"), ("revoke", "3f2a9c0d11e4b768"), ("list", "--json")])
def test_the_old_subcommands_exit_2_with_the_new_command(home: Home, words: tuple[str, ...]) -> None:
    refused = run(home, *words)
    assert refused.returncode == 2
    assert f"freehold sign-ins {' '.join(words)}" in refused.stderr
    assert refused.stdout == ""
