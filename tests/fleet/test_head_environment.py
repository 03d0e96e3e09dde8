"""The program of the fleet talks to other machines: it does not get the keys that the manifest names."""

import os
from pathlib import Path

import pytest

from freehold.features import FeatureProgram
from freehold.fleet.program import plan_program
from freehold.keeper.started_process import program_environment, start_process
from freehold.manifest import load_manifest, require_manifest

MANIFEST = """
[models.one]
kind = "openai-compatible"
base_url = "http://127.0.0.1:1/v1"
key = "env:KEY_OF_A_MODEL"
[slots.memory]
mode = "external"
[slots.memory.settings]
url = "env:ADDRESS_WITH_A_PASSWORD"
[fleet]
enabled = true
address = "127.0.0.2"
"""
SECRETS = {"KEY_OF_A_MODEL": "sk-of-the-owner", "ADDRESS_WITH_A_PASSWORD": "postgres://a:b@c/d"}


def plan(folder: Path) -> FeatureProgram:
    path = folder / "freehold.toml"
    path.write_text(MANIFEST)
    program = plan_program(require_manifest(path, os.environ).manifest)
    assert program is not None
    return program


def test_no_key_that_the_manifest_names_is_in_the_environment_of_the_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    program = plan(tmp_path)
    assert set(program.hidden_variables) == set(SECRETS)
    environment = program_environment(program.hidden_variables)
    started = start_process(["/bin/sh", "-c", "tr '\\0' '\\n' < /proc/self/environ"], environment)
    with os.fdopen(started.outputs["stdout"], "rb") as said, os.fdopen(started.outputs["stderr"], "rb"):
        text = said.read().decode()
    assert started.process.wait() == 0
    assert f"PATH={os.environ['PATH']}" in text
    assert not any(value in text for value in SECRETS.values())
    assert all(value in program_environment()[name] for name, value in SECRETS.items())


def test_the_manifest_is_as_valid_for_the_head_as_for_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads the manifest too, which names variables that must be set."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    program = plan(tmp_path)
    hidden = program_environment(program.hidden_variables)
    path = tmp_path / "freehold.toml"
    ours, its = load_manifest(path, os.environ), load_manifest(path, hidden)
    assert [str(one) for one in its.problems] == [str(one) for one in ours.problems]
