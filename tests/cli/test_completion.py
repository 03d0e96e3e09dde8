"""Completion offers commands and the names of this Freehold, in real shells, and never fails."""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from freehold.cli.main import freehold_command
from freehold.egress.vault import Vault
from freehold.home import Home

PROGRAM = Path(sys.executable).with_name("freehold")


def complete(home: Path, *words: str, shell: str = "bash", more: Mapping[str, str] | None = None) -> list[str]:
    """What the shell would offer for the last of these words, asked in the way of its own script."""
    environment = {
        **(more or {}),
        "PATH": os.environ["PATH"],
        "FREEHOLD_HOME": str(home),
        "COMP_WORDS": " ".join(("freehold", *words)),
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words)),
        "_FREEHOLD_COMPLETE": f"{shell}_complete",
    }
    found = subprocess.run([PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert found.stderr == ""
    lines = [line for line in found.stdout.splitlines() if line]
    if shell == "zsh":
        return lines[1::3]  # a type, a value and a word about it
    return [line.split(",", 1)[1].partition("\t")[0] for line in lines]


def test_commands_and_options_are_offered(tmp_path: Path) -> None:
    assert complete(tmp_path, "res") == ["restart", "restore", "restore-from"]
    assert "--dry-run" in complete(tmp_path, "undo", "--")


def test_agents_are_offered_also_without_a_running_freehold(tmp_path: Path) -> None:
    assert complete(tmp_path, "agents", "add", "cl") == ["claude"]
    assert complete(tmp_path, "chat", "--agent", "cod") == ["codex"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_values(tmp_path: Path, shell: str) -> None:
    assert complete(tmp_path, "agents", "add", "cod", shell=shell) == ["codex"]
    assert complete(tmp_path, "models", "add", "anth", shell=shell) == ["anthropic"]


def test_secrets_are_offered_by_name(tmp_path: Path) -> None:
    home = Home(root=tmp_path / "home", run=tmp_path / "run")
    home.root.mkdir(mode=0o700)
    Vault(home.vault).set("openai", "sk-test")
    assert complete(home.root, "secret", "remove", "") == ["openai"]


def test_models_of_connected_providers_are_offered_for_a_new_one(tmp_path: Path) -> None:
    """Nobody is asked: a suggestion sends no key."""
    home = Home(root=tmp_path / "home", run=tmp_path / "run")
    home.root.mkdir(mode=0o700)
    home.manifest.write_text(
        '[models.openai]\nkind = "openai"\nkey = "secret:openai"\nmodel = "gpt-5"\n'
        '[models.work]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "qwen3"\n'
    )
    assert complete(home.root, "models", "add", "openai", "--model", "") == ["gpt-5"]
    assert complete(home.root, "models", "add", "--model", "") == ["gpt-5", "qwen3"]
    assert complete(home.root, "models", "add", "anthropic", "--model", "") == []


@pytest.mark.parametrize("words", [("undo", ""), ("chat", "--session", ""), ("token", "revoke", ""), ("logs", "")])
def test_nothing_is_offered_and_nothing_is_said_where_there_is_nothing(tmp_path: Path, words: tuple[str, ...]) -> None:
    missing = tmp_path / "missing"
    assert complete(missing, *words) == []
    assert not missing.exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_installed_where_the_shell_looks(tmp_path: Path, shell: str) -> None:
    places = {
        "bash": ".local/share/bash-completion/completions/freehold",
        "zsh": ".local/share/zsh/site-functions/_freehold",
        "fish": ".config/fish/completions/freehold.fish",
    }
    environment = {"HOME": str(tmp_path), "SHELL": f"/usr/bin/{shell}", "XDG_DATA_HOME": "", "XDG_CONFIG_HOME": ""}
    result = CliRunner().invoke(freehold_command, ["completion"], env=environment)
    assert result.exit_code == 0, result.output
    assert str(tmp_path / places[shell]) in result.output
    assert "_FREEHOLD_COMPLETE" in (tmp_path / places[shell]).read_text()


def test_an_unknown_shell_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(freehold_command, ["completion"], env={"HOME": str(tmp_path), "SHELL": "/bin/tcsh"})
    assert result.exit_code == 2
    assert "Your shell is tcsh" in result.output


@pytest.mark.parametrize("variable", ["", None])
def test_without_a_variable_the_login_shell_of_the_user_is_taken(
    tmp_path: Path, variable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = pwd.struct_passwd(("someone", "x", 1000, 1000, "", "/home/someone", "/usr/bin/fish"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: user)
    environment = {"HOME": str(tmp_path), "SHELL": variable, "XDG_DATA_HOME": "", "XDG_CONFIG_HOME": ""}
    result = CliRunner().invoke(freehold_command, ["completion"], env=environment)
    assert result.exit_code == 0, result.output
    assert "Installed completion for fish" in result.output


def test_bash_completes_with_the_installed_script(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = CliRunner().invoke(freehold_command, ["completion", "bash", "--print"]).output
    (tmp_path / "script").write_text(script)
    ask = 'source "$1"; COMP_WORDS=(freehold agents add co); COMP_CWORD=3; _freehold_completion freehold; echo "${COMPREPLY[*]}"'
    environment = {"PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "FREEHOLD_HOME": str(tmp_path / "home")}
    found = subprocess.run(
        [bash, "--norc", "-c", ask, "bash", str(tmp_path / "script")],
        env=environment, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert found.stdout == "codex\n"


def test_an_unknown_command_ends_no_completion(tmp_path: Path) -> None:
    assert "undo" in complete(tmp_path, "udno", "")
    assert "add" in complete(tmp_path, "models", "ad", "")
