"""Agents are installed pinned and checked by hash, completely or not at all. The manifest can describe others."""

import importlib.resources
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from freehold.agents.catalogue import npm
from freehold.agents.catalogue.definition import ModelEndpoint
from freehold.agents.catalogue.installation import find_problem, install_agent, read_receipt, remove_agent
from freehold.agents.catalogue.registry import choose_provider, find_agent, known_agents
from freehold.cli.agents import command
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.manifest import Manifest, load_manifest

ENDPOINT = ModelEndpoint("local", "openai-compatible", "http://127.0.0.1:3129/local/v1", "freehold-placeholder-x", "m")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(root=tmp_path, run=tmp_path / "run")


def manifest(home: Home, text: str = "") -> Manifest:
    home.manifest.write_text(text)
    return load_manifest(home.manifest, {}, home=home.root).manifest


def test_every_shipped_lock_pins_by_hash_and_names_no_host(home: Home) -> None:
    entries = known_agents(manifest(home))
    for name in ("claude", "codex", "gemini", "opencode"):
        lock = json.loads(
            (importlib.resources.files("freehold.agents.catalogue") / "locks" / f"{name}.json").read_bytes()
        )
        packages = {path: body for path, body in lock["packages"].items() if path}
        assert all(body["integrity"].startswith("sha512-") for body in packages.values()), name
        assert not any("resolved" in body for body in packages.values()), name
        ((package, version),) = lock["packages"][""]["dependencies"].items()
        assert str(entries[name].package).startswith("npm:")
        if "linux-" not in package:
            assert entries[name].package == f"npm:{package}@{version}"


def fake_npm(monkeypatch: pytest.MonkeyPatch, home: Home, *, fails: bool = False) -> list[list[str]]:
    """A double for npm: records its calls and makes a package."""
    calls: list[list[str]] = []
    wheel = home.root / "wheel"
    (wheel / "bin").mkdir(parents=True)
    (wheel / "bin" / "node").write_text("node")

    def run(command: list[str], folder: Path, report: Any) -> None:
        calls.append(command)
        (folder / "half").write_text("x")
        if fails:
            raise FreeholdError("agent.install-failed", "no network")
        lock = {"packages": {"": {}, "node_modules/mine": {"integrity": "sha512-x"}}}
        (folder / "package-lock.json").write_text(json.dumps(lock))
        (folder / "node_modules" / "mine").mkdir(parents=True, exist_ok=True)
        report()

    monkeypatch.setattr(npm, "run_command", run)
    monkeypatch.setattr(npm, "_wheel", lambda: wheel)
    return calls


MINE = '[agents.mine]\npackage = "npm:mine@1.0.0"\ncommand = "mine acp"\n'


def test_an_installation_is_complete_and_never_runs_a_script(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = fake_npm(monkeypatch, home)
    entry = find_agent(manifest(home, MINE), "mine")
    assert find_problem(home, entry) is not None
    receipt = install_agent(home, entry)
    assert receipt.package == "npm:mine@1.0.0"
    assert find_problem(home, entry) is None
    assert (home.agents / ".node/bin/node").stat().st_mode & 0o777 == 0o755
    assert all("--ignore-scripts" in words for words in calls)
    assert [words[2] for words in calls] == ["install", "ci"]
    install_agent(home, entry)
    assert len(calls) == 2
    newer = find_agent(manifest(home, MINE.replace("1.0.0", "2.0.0")), "mine")
    assert "2.0.0" in str(find_problem(home, newer))
    install_agent(home, newer)
    assert [path.name for path in home.agents.iterdir() if path.name.startswith((".new", ".old"))] == []
    remove_agent(home, "mine")
    assert read_receipt(home, "mine") is None
    with pytest.raises(FreeholdError, match="not installed"):
        remove_agent(home, "mine")


def test_a_failed_installation_keeps_the_installed_version(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_npm(monkeypatch, home, fails=True)
    entry = find_agent(manifest(home, MINE), "mine")
    (home.agents / "mine").mkdir(parents=True)
    (home.agents / "mine" / "freehold.json").write_text('{"package": "npm:mine@0.9", "lock": "", "at": ""}')
    with pytest.raises(FreeholdError, match="no network"):
        install_agent(home, entry)
    assert str(read_receipt(home, "mine")).count("0.9") == 1
    assert not list(home.agents.glob(".new-mine*"))


def test_the_manifest_alone_can_describe_an_agent(home: Home) -> None:
    text = (
        MINE
        + 'env = { QUIET = "1" }\nfiles = { ".config/mine" = "x" }\nmode = "ask"\n[models.local]\nbase_url = "http://127.0.0.1:1"\n'
    )
    found = manifest(home, text)
    entry = find_agent(found, "mine")
    configured = entry.configure(ENDPOINT)
    assert entry.command == ("mine", "acp")
    assert entry.runtime == "node"
    assert configured.env["QUIET"] == "1"
    assert configured.env["OPENAI_BASE_URL"] == ENDPOINT.base_url
    assert configured.files == {".config/mine": "x"}
    assert choose_provider(entry, found) == "local"


def test_an_agent_without_a_usable_model_names_the_api_it_needs(home: Home) -> None:
    found = manifest(home, '[models.local]\nbase_url = "http://127.0.0.1:1"\n')
    with pytest.raises(FreeholdError, match="the API anthropic"):
        choose_provider(find_agent(found, "claude"), found)
    assert choose_provider(find_agent(found, "codex"), found) == "local"
    assert choose_provider(find_agent(manifest(home), "builtin"), manifest(home)) is None


def test_an_unknown_agent_lists_the_known_ones(home: Home) -> None:
    with pytest.raises(FreeholdError) as error:
        find_agent(manifest(home), "clod")
    assert "claude" in error.value.hint


def test_the_list_shows_what_is_not_installed(home: Home) -> None:
    result = CliRunner().invoke(command, ["--home", str(home.root), "--json"])
    rows = {row["name"]: row for row in json.loads(result.output)}
    assert set(rows) == {"builtin", "claude", "codex", "gemini", "opencode"}
    assert rows["claude"]["problem"] == "not installed: freehold agents add claude"
    assert rows["builtin"]["default"] is True
    assert "builtin" in CliRunner().invoke(command, ["--home", str(home.root)]).output
