"""`freehold egress` on the command line, mostly while Freehold is not running."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.egress.proxy_harness import echo, hang_up, run_proxy, run_server
from tests.support.condition import DEADLINE

from freehold.agents.sessions.store import SessionStore
from freehold.egress import EgressSettings, NetworkRequests, ensure_tables
from freehold.egress.names import parse_host
from freehold.egress.service import EgressService
from freehold.timeline import Timeline


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A Freehold with a manifest and two network requests that wait."""
    (tmp_path / "freehold.toml").write_text('[egress]\nmode = "ask"\nallow = ["api.test"]\ndeny = ["evil.example"]\n')
    with Timeline(tmp_path / "timeline.db") as timeline:
        ensure_tables(timeline)
        for host in ("example.org", "www.example.net"):
            NetworkRequests(timeline).add(parse_host(host), 443, "agent:claude")
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
    return [f"{rule['verdict']} {rule['rule']} {rule['reach']}" for rule in state(home)["rules"]]


def test_it_shows_mode_rules_and_network_requests(home: Path) -> None:
    done = freehold("--home", home)
    assert done.returncode == 0, done.stderr
    assert "mode ask" in done.stdout
    assert "api.test" in done.stdout
    assert "evil.example" in done.stdout
    assert "example.org:443  requested once by agent:claude (no session)" in done.stdout
    assert "freehold egress answer 1 once|until-restart|always|never" in done.stdout


def test_a_network_request_names_the_session_that_asks(home: Path) -> None:
    with Timeline(home / "timeline.db") as timeline:
        store = SessionStore(timeline)
        store.prepare()
        session = store.create("claude", "Mend the page", None, who="owner").id
        for asking in (session, "deleted"):
            NetworkRequests(timeline).add(parse_host(f"{asking}.test"), 443, "agent:claude", asking)
    shown = freehold("--home", home).stdout
    assert f"{session}.test:443  requested once by 'Mend the page' (claude, session {session})" in shown
    assert "deleted.test:443  requested once by session deleted" in shown


def test_a_fresh_home_has_nothing_to_show(tmp_path: Path) -> None:
    done = freehold("--home", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no network requests" in done.stdout
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
    assert "egress.no-request" in again.stderr


def test_the_old_answer_session_is_refused_with_the_new_words(home: Path) -> None:
    done = freehold("--home", home, "answer", "1", "session")
    assert done.returncode == 2
    assert "'session' is now 'until-restart'" in done.stderr
    assert len(state(home)["pending"]) == 2


def test_all_requests_can_be_denied_at_once_but_not_allowed(home: Path) -> None:
    assert freehold("--home", home, "answer", "all", "always").returncode == 2
    assert freehold("--home", home, "answer", "1.5", "always").returncode == 2
    assert freehold("--home", home, "answer", "1", "perhaps").returncode == 2
    assert len(state(home)["pending"]) == 2
    assert freehold("--home", home, "answer", "all", "never").returncode == 0
    assert state(home)["pending"] == []


def test_rules_are_added_and_removed(home: Path) -> None:
    assert freehold("--home", home, "allow", "*.Example.ORG").stdout == "added: allow *.example.org\n"
    assert freehold("--home", home, "deny", "example.org:22").returncode == 0
    assert rules(home)[2:] == ["allow *.example.org always", "deny example.org:22 always"]
    assert freehold("--home", home, "forget", "*.example.org").stdout == "removed: allow *.example.org\n"
    assert freehold("--home", home, "forget", "api.test").returncode == 1
    with Timeline(home / "timeline.db", readonly=True) as timeline:
        assert [event.who for event in timeline.read(kinds=("egress.rule_added", "egress.rule_removed"))] == [
            "owner"
        ] * 3
        assert timeline.verify() == []


@pytest.mark.parametrize("rule", ["10.0.0.0/8", "https://example.org/", "localhost", "0x7f.1", "*", "example.org:http"])
def test_an_invalid_rule_is_explained(home: Path, rule: str) -> None:
    done = freehold("--home", home, "allow", rule)
    assert done.returncode == 1
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_an_allow_rule_without_effect_and_a_private_address_give_a_warning(home: Path) -> None:
    assert "deny rules win" in freehold("--home", home, "allow", "evil.example").stderr
    assert "private address" in freehold("--home", home, "allow", "10.0.0.7").stderr


async def test_a_running_freehold_applies_changes_at_once(tmp_path: Path) -> None:
    async with run_server(echo) as server, run_proxy(tmp_path) as proxy:
        target = f"127.0.0.1:{server.port}"
        status, _reader, writer = await proxy.connect(target)
        assert status.startswith(b"HTTP/1.1 403")
        await hang_up(writer)
        assert (await asyncio.to_thread(freehold, "--home", tmp_path, "allow", target)).returncode == 0
        async for snapshot in proxy.egress.changes():
            if snapshot.rules:
                break
        status, reader, writer = await proxy.connect(target)
        assert status.startswith(b"HTTP/1.1 200")
        assert (await asyncio.to_thread(freehold, "--home", tmp_path, "deny", target)).returncode == 0
        async with asyncio.timeout(DEADLINE):
            assert await reader.read() == b""
        await hang_up(writer)


async def test_a_running_freehold_uses_the_rules_of_the_manifest(home: Path) -> None:
    from freehold.manifest import load_manifest

    found = load_manifest(home / "freehold.toml", {}).manifest.egress
    with Timeline(home / "timeline.db") as timeline:
        async with EgressService(timeline, EgressSettings(found.mode, tuple(found.allow), tuple(found.deny))) as egress:
            assert [str(rule) for rule in egress.status().rules] == ["deny evil.example", "allow api.test"]
