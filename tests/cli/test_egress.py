"""`freehold egress`, as its user types it, with nothing running but where said otherwise."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.egress.street import door, echo, hang_up, upstream

from freehold.egress import EgressSettings, Questions, ensure_tables
from freehold.egress.names import parse_host
from freehold.egress.service import Egress
from freehold.timeline import Timeline


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A Freehold with a manifest and two questions that wait."""
    (tmp_path / "freehold.toml").write_text('[egress]\nmode = "ask"\nallow = ["api.test"]\ndeny = ["evil.example"]\n')
    with Timeline(tmp_path / "timeline.db") as timeline:
        ensure_tables(timeline)
        for host in ("example.org", "www.example.net"):
            Questions(timeline).ask(parse_host(host), 443, "agent:claude")
    return tmp_path


def freehold(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "freehold.cli.main", "egress", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ)


def state(home: Path) -> dict[str, list[dict[str, object]]]:
    done = freehold("--home", home, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, list[dict[str, object]]] = json.loads(done.stdout)
    return found


def rules(home: Path) -> list[str]:
    return [f"{rule['verdict']} {rule['rule']} {rule['scope']}" for rule in state(home)["rules"]]


def test_it_shows_mode_rules_and_questions(home: Path) -> None:
    done = freehold("--home", home)
    assert done.returncode == 0, done.stderr
    assert "mode ask" in done.stdout
    assert "api.test" in done.stdout
    assert "evil.example" in done.stdout
    assert "example.org:443  asked once by agent:claude" in done.stdout
    assert "freehold egress answer 1 once|session|always|never" in done.stdout


def test_a_fresh_home_has_nothing_to_show(tmp_path: Path) -> None:
    done = freehold("--home", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no questions wait for you" in done.stdout
    assert not (tmp_path / "timeline.db").exists()


def test_an_answer_becomes_a_rule(home: Path) -> None:
    assert freehold("--home", home, "answer", "1", "always").stdout == "allowed example.org:443 (always)\n"
    assert freehold("answer", "--home", home, "2", "never").stdout == "denied www.example.net (never)\n"
    assert rules(home) == [
        "deny evil.example manifest",
        "allow api.test manifest",
        "allow example.org:443 always",
        "deny www.example.net always",
    ]
    assert state(home)["pending"] == []
    again = freehold("--home", home, "answer", "1", "always")
    assert again.returncode == 1
    assert "egress.no-question" in again.stderr


def test_all_may_be_refused_at_once_and_not_allowed(home: Path) -> None:
    assert freehold("--home", home, "answer", "all", "always").returncode == 2
    assert freehold("--home", home, "answer", "1.5", "always").returncode == 2
    assert freehold("--home", home, "answer", "1", "perhaps").returncode == 2
    assert len(state(home)["pending"]) == 2
    assert freehold("--home", home, "answer", "all", "never").returncode == 0
    assert state(home)["pending"] == []


def test_rules_are_made_and_forgotten(home: Path) -> None:
    assert freehold("--home", home, "allow", "*.Example.ORG").stdout == "from now on: allow *.example.org\n"
    assert freehold("--home", home, "deny", "example.org:22").returncode == 0
    assert rules(home)[2:] == ["allow *.example.org always", "deny example.org:22 always"]
    assert freehold("--home", home, "forget", "*.example.org").stdout == "forgotten: allow *.example.org\n"
    assert freehold("--home", home, "forget", "api.test").returncode == 1
    with Timeline(home / "timeline.db", readonly=True) as timeline:
        assert [event.who for event in timeline.read(kinds=("egress.rule_added", "egress.rule_removed"))] == [
            "owner"
        ] * 3
        assert timeline.verify() == []


@pytest.mark.parametrize("rule", ["10.0.0.0/8", "https://example.org/", "localhost", "0x7f.1", "*", "example.org:http"])
def test_a_rule_that_is_none_is_explained(home: Path, rule: str) -> None:
    done = freehold("--home", home, "allow", rule)
    assert done.returncode == 1
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_an_allow_that_cannot_win_and_an_address_that_is_not_public_are_pointed_out(home: Path) -> None:
    assert "deny wins" in freehold("--home", home, "allow", "evil.example").stderr
    assert "private address" in freehold("--home", home, "allow", "10.0.0.7").stderr


async def test_a_running_freehold_obeys_at_once(tmp_path: Path) -> None:
    async with upstream(echo) as server, door(tmp_path) as way:
        target = f"127.0.0.1:{server.port}"
        status, _reader, writer = await way.connect(target)
        assert status.startswith(b"HTTP/1.1 403")
        await hang_up(writer)
        assert (await asyncio.to_thread(freehold, "--home", tmp_path, "allow", target)).returncode == 0
        async for snapshot in way.egress.changes():
            if snapshot.rules:
                break
        status, reader, writer = await way.connect(target)
        assert status.startswith(b"HTTP/1.1 200")
        assert (await asyncio.to_thread(freehold, "--home", tmp_path, "deny", target)).returncode == 0
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        await hang_up(writer)


async def test_what_the_manifest_says_is_what_runs(home: Path) -> None:
    from freehold.manifest import load_manifest

    found = load_manifest(home / "freehold.toml", {}).manifest.egress
    with Timeline(home / "timeline.db") as timeline:
        async with Egress(timeline, EgressSettings(found.mode, tuple(found.allow), tuple(found.deny))) as egress:
            assert [str(rule) for rule in egress.snapshot().rules] == ["deny evil.example", "allow api.test"]
