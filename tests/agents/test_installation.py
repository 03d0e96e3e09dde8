"""Agents are installed pinned and checked by hash, completely or not at all. The manifest can describe others."""

import importlib.resources
import json
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from freehold.agents.catalogue import npm
from freehold.agents.catalogue.definition import ModelEndpoint
from freehold.agents.catalogue.install_command import find_reason
from freehold.agents.catalogue.installation import find_problem, install_agent, read_receipt, remove_agent
from freehold.agents.catalogue.registry import (
    check_provider_fits,
    choose_provider,
    find_agent,
    known_agents,
    split_choice,
)
from freehold.cli.agents import command
from freehold.cli.main import freehold_command
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
        wanted = lock["packages"][""]["dependencies"]
        assert str(entries[name].package).startswith("npm:")
        if not any("linux-" in package for package in wanted):
            assert entries[name].packages("npm") == [f"{package}@{version}" for package, version in wanted.items()]


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


def test_optional_parts_that_nobody_has_do_not_stop_an_installation(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = fake_npm(monkeypatch, home)
    double = vars(npm)["run_command"]

    def run(command: list[str], folder: Path, report: Any) -> None:
        double(command, folder, report)
        if command[2] == "ci":
            raise FreeholdError("agent.install-failed", "Missing: clipboard-darwin-arm64@ from lock file")

    monkeypatch.setattr(npm, "run_command", run)
    entry = find_agent(manifest(home, MINE), "mine")
    install_agent(home, entry)
    assert find_problem(home, entry) is None
    assert [words[2] for words in calls] == ["install", "ci", "install"]
    assert all("--ignore-scripts" in words for words in calls)


def test_the_reason_of_npm_is_shown_and_not_how_it_is_used() -> None:
    output = (
        "npm error code EUSAGE\nnpm error\nnpm error Missing: x from lock file\nnpm error Usage:\nnpm error npm ci\n"
    )
    assert find_reason(output) == "code EUSAGE\nMissing: x from lock file"
    assert (
        find_reason("Collecting x\nERROR: No matching distribution") == "Collecting x\nERROR: No matching distribution"
    )


def test_the_first_agent_is_added_to_a_freehold_that_has_never_run_and_to_no_other(home: Home) -> None:
    words = ["add", "builtin", "--if-new", "--home", str(home.root)]
    assert CliRunner().invoke(command, words).exit_code == 0
    assert read_receipt(home, "builtin") is not None
    remove_agent(home, "builtin")
    home.history.mkdir()
    assert CliRunner().invoke(command, words).exit_code == 0
    assert read_receipt(home, "builtin") is None


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


def test_a_description_says_how_the_agent_calls_its_model(home: Home) -> None:
    text = (
        '[agents.mine]\ncommand = "mine"\nenv = { MY_URL = "{model.url}/chat", MY_KEY = "{model.key}" }\n'
        'files = { ".mine.json" = \'{"model": "{model.name}", "kind": "{model.kind}", "other": "{model.x}"}\' }\n'
    )
    entry = find_agent(manifest(home, text), "mine")
    configured = entry.configure(ENDPOINT)
    assert configured.env["MY_URL"] == "http://127.0.0.1:3129/local/v1/chat"
    assert configured.env["MY_KEY"] == "freehold-placeholder-x"
    assert configured.files == {".mine.json": '{"model": "m", "kind": "openai-compatible", "other": "{model.x}"}'}
    assert entry.configure(None).env["MY_URL"] == "/chat"


def test_a_description_names_further_folders_of_skills_below_the_home(home: Home) -> None:
    text = '[agents.mine]\ncommand = "mine"\nskills = [".mine/skills"]\n'
    assert find_agent(manifest(home, text), "mine").launch(None).skills == (".mine/skills",)
    changed = find_agent(manifest(home, '[agents.claude]\nskills = [".mine/skills"]\n'), "claude")
    assert (changed.skills, changed.is_changed) == ((".mine/skills",), False)
    for place in ("/etc", "../elsewhere", ".mine/../../elsewhere", "~/skills", ".", ""):
        home.manifest.write_text(text.replace(".mine/skills", place))
        (problem,) = load_manifest(home.manifest, {}, home=home.root).errors
        assert "agents.mine.skills" in problem.message


def test_an_agent_can_have_several_packages_from_both_registries(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = fake_npm(monkeypatch, home)
    wheels = tmp_path / "wheels"
    write_wheel(wheels, "tealib", "")
    write_wheel(wheels, "tea", "[console_scripts]\ntea-acp = tea:serve\n.odd = tea:serve\n")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_CONFIG_FILE", raising=False)
    text = '[agents.mine]\npackage = "npm:mine@1.0.0 npm:other@2.0.0 pypi:tea==1.0 pypi:tealib==1.0"\ncommand = "tea-acp"\n'
    entry = find_agent(manifest(home, text), "mine")
    receipt = install_agent(home, entry)
    assert receipt.lock.count("sha256:") == 2
    assert [words[2] for words in calls] == ["install", "ci"]
    own = home.agents / "mine"
    assert json.loads((own / "package.json").read_text())["dependencies"] == {"mine": "1.0.0", "other": "2.0.0"}
    assert [path.name for path in (own / "bin").iterdir()] == ["tea-acp"]
    script = (own / "bin" / "tea-acp").read_text()
    assert script.startswith("#!/usr/bin/python3\n")
    assert 'sys.path.insert(0, "/opt/agents/mine/site")' in script
    assert not (own / "site" / "bin").exists()
    variables = entry.launch(None).env
    assert "PYTHONPATH" not in variables, "programs that the agent runs would find its packages"
    by_module = replace(entry, command=("python3", "-m", "tea")).launch(None).env
    assert by_module["PYTHONPATH"] == "/opt/agents/mine/site"
    assert "/opt/agents/mine/bin:" in str(variables["PATH"])
    # The script works, here with the place that the folder has on this machine.
    (own / "bin" / "tea-acp").write_text(script.replace("/opt/agents/mine", str(own)))
    done = subprocess.run([own / "bin" / "tea-acp"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("tea\n", 7)


def test_a_command_of_a_package_that_leads_elsewhere_is_written_nowhere(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Newer versions of pip refuse the whole package. Older ones install it, and it has no such command here."""
    wheels = tmp_path / "wheels"
    write_wheel(wheels, "tea", "[console_scripts]\ntea-acp = tea:serve\n../evil = tea:serve\n")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_CONFIG_FILE", raising=False)
    entry = find_agent(manifest(home, '[agents.mine]\npackage = "pypi:tea==1.0"\ncommand = "tea-acp"\n'), "mine")
    refusal = ""
    try:
        install_agent(home, entry)
    except FreeholdError as error:
        refusal = error.message
    assert "'../evil'" in refusal or (home.agents / "mine" / "bin" / "tea-acp").exists()
    assert not list(tmp_path.rglob("evil"))


def write_wheel(folder: Path, name: str, entry_points: str) -> None:
    folder.mkdir(exist_ok=True)
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}/__init__.py": "def serve():\n    print('tea')\n    return 7\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **({f"{info}/entry_points.txt": entry_points} if entry_points else {}),
    }
    rows = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for path, text in {**files, f"{info}/RECORD": rows}.items():
            wheel.writestr(path, text)


def test_an_agent_without_a_usable_model_names_the_api_it_needs(home: Home) -> None:
    found = manifest(home, '[models.local]\nbase_url = "http://127.0.0.1:1"\n')
    with pytest.raises(FreeholdError, match="the API anthropic"):
        choose_provider(find_agent(found, "claude"), found)
    assert choose_provider(find_agent(found, "codex"), found) == "local"
    assert choose_provider(find_agent(manifest(home), "builtin"), manifest(home)) is None


SUBSCRIPTION = '[models.plan]\nkind = "anthropic"\nauth = "claude-code"\nkey = "secret:plan"\n'
KEYED = '[models.keyed]\nkind = "anthropic"\nkey = "secret:keyed"\n'


def test_a_subscription_is_used_by_its_vendors_own_agent_only(home: Home) -> None:
    found = manifest(home, SUBSCRIPTION + KEYED)
    assert choose_provider(find_agent(found, "claude"), found) == "plan"
    assert choose_provider(find_agent(found, "builtin"), found) == "keyed"
    with pytest.raises(FreeholdError, match="only the agent claude may use") as refused:
        check_provider_fits(find_agent(found, "builtin"), found, "plan")
    assert refused.value.kind.status == 403
    check_provider_fits(find_agent(found, "builtin"), found, "keyed")


def test_an_agent_that_the_manifest_changes_is_not_the_vendors_own(home: Home) -> None:
    found = manifest(home, SUBSCRIPTION + KEYED + '[agents.claude]\nenv = { NODE_OPTIONS = "--require ./spy.js" }\n')
    entry = find_agent(found, "claude")
    assert choose_provider(entry, found) == "keyed"
    with pytest.raises(FreeholdError, match="as it is shipped"):
        check_provider_fits(entry, found, "plan")
    named = manifest(home, SUBSCRIPTION + '[agents.mine]\ncommand = "x"\nmodel = "plan"\n')
    with pytest.raises(FreeholdError, match="only the agent claude"):
        choose_provider(find_agent(named, "mine"), named)


def test_with_a_subscription_the_placeholder_is_a_token_and_not_a_key(home: Home) -> None:
    configured = find_agent(manifest(home), "claude").configure(replace(ENDPOINT, auth="claude-code"))
    assert configured.env["CLAUDE_CODE_OAUTH_TOKEN"] == ENDPOINT.key
    assert "ANTHROPIC_API_KEY" not in configured.env


def test_the_default_model_is_used_by_the_agents_that_can(home: Home) -> None:
    local = '[models.local]\nbase_url = "http://127.0.0.1:1"\n'
    found = manifest(home, KEYED + local + '[agents]\nmodel = "local"\n')
    assert choose_provider(find_agent(found, "builtin"), found) == "local"
    assert choose_provider(find_agent(found, "claude"), found) == "keyed"


def test_a_session_names_a_provider_a_model_of_it_or_a_model_of_its_agent(home: Home) -> None:
    found = manifest(home, KEYED)
    assert split_choice(None, found) == (None, None)
    assert split_choice("keyed", found) == ("keyed", None)
    assert split_choice("keyed/claude-x", found) == ("keyed", "claude-x")
    assert split_choice("openai/gpt-5", found) == (None, "openai/gpt-5")
    assert split_choice("keyed/", found) == (None, "keyed/")


def test_an_unknown_agent_lists_the_known_ones(home: Home) -> None:
    with pytest.raises(FreeholdError) as error:
        find_agent(manifest(home), "clod")
    assert "claude" in error.value.hint


def test_an_agent_is_removed_by_its_command(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_npm(monkeypatch, home)
    install_agent(home, find_agent(manifest(home, MINE), "mine"))
    words = ["agents", "remove", "mine", "--home", str(home.root)]
    assert CliRunner().invoke(freehold_command, words).output == "Removed mine\n"
    assert read_receipt(home, "mine") is None
    again = CliRunner().invoke(freehold_command, words).exception
    assert isinstance(again, FreeholdError)
    assert again.code == "agent.not-found"


def test_the_list_shows_what_is_not_installed(home: Home) -> None:
    result = CliRunner().invoke(command, ["--home", str(home.root), "--json"])
    rows = {row["name"]: row for row in json.loads(result.output)}
    assert set(rows) == {"builtin", "claude", "codex", "gemini", "opencode"}
    assert rows["claude"]["problem"] == "not installed: freehold agents add claude"
    assert rows["builtin"]["default"] is True
    assert "builtin" in CliRunner().invoke(command, ["--home", str(home.root)]).output
