"""`freehold timeline`, as its user types it, with nothing running."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from freehold.timeline import Timeline


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Four days of events, one a day, the last one just now."""
    days = iter((3, 2, 1, 0))
    with Timeline(tmp_path / "timeline.db", clock=lambda: datetime.now(UTC) - timedelta(days=next(days))) as timeline:
        timeline.append("keeper.started", {"version": "0.1.0"})
        timeline.append("egress.request_refused", {"host": "evil.example", "why": "no rule"}, who="agent:claude")
        timeline.append("history.file_changed", {"path": "a\x1b[31m\nb"})
        timeline.append("keeper.stopped", who="owner")
    return tmp_path


def freehold(*arguments: str | Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "freehold.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TZ": "UTC", **environ})


def test_each_event_is_one_line(home: Path) -> None:
    done = freehold("timeline", "--home", home)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert "egress.request_refused" in lines[1]
    assert 'agent:claude  host=evil.example why="no rule"' in lines[1]


def test_control_characters_from_the_computer_are_escaped(home: Path) -> None:
    printed = freehold("timeline", "--home", home).stdout
    assert "\x1b" not in printed
    assert r"path=a\x1b[31m\nb" in printed


def test_json_lines_for_scripts(home: Path) -> None:
    events = [json.loads(line) for line in freehold("timeline", "--json", FREEHOLD_HOME=str(home)).stdout.splitlines()]
    assert [event["seq"] for event in events] == [1, 2, 3, 4]
    assert events[1]["data"] == {"host": "evil.example", "why": "no rule"}
    assert events[2]["previous"] == events[1]["hash"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--kind", "keeper.*"], [1, 4]),
        (["--kind", "keeper.stopped", "--kind", "history.*"], [3, 4]),
        (["--since", "36h"], [3, 4]),
        (["--since", "1970-01-01T00:00:00Z", "--limit", "2"], [3, 4]),
        (["--after", "1"], [2, 3, 4]),
        (["--after", "1", "--limit", "2"], [2, 3]),
        (["--limit", "1"], [4]),
        (["--kind", "ssh.*"], []),
    ],
)
def test_options_select_events(home: Path, options: list[str], expected: list[int]) -> None:
    done = freehold("timeline", "--home", home, "--json", *options)
    assert [json.loads(line)["seq"] for line in done.stdout.splitlines()] == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--since", "yesterday"], "30m, 2h, 7d"),
        (["--limit", "0"], "0"),
        (["verify", "--head", "x"], "is not SEQ:HASH"),
    ],
)
def test_wrong_usage_is_explained_and_exits_2(home: Path, options: list[str], words: str) -> None:
    done = freehold("timeline", "--home", home, *options)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_bad_kind_and_a_missing_timeline_are_explained_and_exit_1(home: Path, tmp_path: Path) -> None:
    done = freehold("timeline", "--home", home, "--kind", "keeper")
    assert done.returncode == 1
    assert "timeline.bad-kind" in done.stderr
    done = freehold("timeline", "--home", tmp_path / "none")
    assert done.returncode == 1
    assert "freehold up" in done.stderr


def test_following_prints_stored_events_and_then_new_ones(home: Path) -> None:
    options = ["timeline", "-f", "--json", "--limit", "1", "--home", str(home)]
    command = [sys.executable, "-m", "freehold.cli.main", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["seq"] == 4
        with Timeline(home / "timeline.db") as timeline:
            timeline.append("ssh.opened")
            timeline.append("ssh.closed")
        assert [json.loads(following.stdout.readline())["kind"] for _ in range(2)] == ["ssh.opened", "ssh.closed"]
        following.send_signal(signal.SIGINT)
        assert following.stdout.read() == ""
    assert following.returncode == 130


def test_verify_finds_nothing_in_an_intact_timeline_and_prints_its_head(home: Path) -> None:
    done = freehold("timeline", "verify", "--home", home)
    assert done.returncode == 0, done.stderr
    head = done.stdout.splitlines()[-1].removeprefix("head ")
    assert freehold("timeline", "--home", home, "verify", "--head", head).returncode == 0
    done = freehold("timeline", "--home", home, "verify", "--head", "3:" + head.partition(":")[2])
    assert done.returncode == 1
    assert "rewritten" in done.stdout


def test_verify_names_the_damage_and_exits_1(home: Path) -> None:
    with closing(sqlite3.connect(home / "timeline.db")) as thief:
        thief.execute("DROP TRIGGER event_stays_same")
        thief.execute("DROP TRIGGER event_stays")
        thief.execute("UPDATE event SET who = 'nobody' WHERE seq = 2")
        thief.execute("DELETE FROM event WHERE seq = 4")
        thief.commit()
    done = freehold("timeline", "verify", "--home", home)
    assert done.returncode == 1
    assert "event 2 was changed" in done.stdout
    assert "event 4 is missing" in done.stdout
    done = freehold("timeline", "verify", "--json", "--home", home)
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert not found["ok"]
    assert [(problem["fault"], problem["seq"]) for problem in found["problems"]] == [("changed", 2), ("missing", 4)]


def test_old_events_are_archived_on_request_and_read_and_verified_as_before(tmp_path: Path) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=100)
    with Timeline(tmp_path / "timeline.db", clock=lambda: long_ago) as timeline, timeline.transaction() as tx:
        for number in range(2000):
            tx.append("keeper.counted", {"number": number})
    before = freehold("timeline", "--after", "0", "--json", "--home", tmp_path).stdout
    assert json.loads(freehold("timeline", "archive", "--json", "--older-than", "101", "--home", tmp_path).stdout) == {
        "first": 0, "last": 0, "count": 0
    }  # fmt: skip
    done = freehold("timeline", "archive", "--home", tmp_path)
    assert done.stdout == "768 events moved to the archive: 1 to 768\n", done.stderr
    assert freehold("timeline", "archive", "--home", tmp_path).stdout == "No event is old enough.\n"
    after = freehold("timeline", "--after", "0", "--limit", "2000", "--json", "--home", tmp_path).stdout
    assert after == before
    size = freehold("timeline", "size", "--home", tmp_path).stdout.splitlines()
    assert size[0].startswith(f"1,233 events in {tmp_path}/timeline.db (")
    assert size[1].startswith(f"768 older events in {tmp_path}/timeline-archive (")
    assert json.loads(freehold("timeline", "--home", tmp_path, "size", "--json").stdout)["archived"] == 768
    assert freehold("timeline", "verify", "--home", tmp_path).returncode == 0
    file = tmp_path / "timeline-archive" / "000000000001.jsonl.gz"
    file.write_bytes(file.read_bytes()[:-5])
    damaged = freehold("timeline", "verify", "--home", tmp_path)
    assert damaged.returncode == 1
    assert "events 513 to 768 are lost: 000000000001.jsonl.gz was cut or changed" in damaged.stdout


def test_there_must_be_a_timeline_to_archive(tmp_path: Path) -> None:
    done = freehold("timeline", "archive", "--home", tmp_path)
    assert done.returncode == 1
    assert "There is no timeline" in done.stderr
    assert not list(tmp_path.iterdir())
