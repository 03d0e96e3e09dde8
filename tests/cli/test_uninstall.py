"""`freehold uninstall` removes what is made again, keeps the data, and removes that only when the owner types its place."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.freehold import FreeholdHarness

from freehold.cli.uninstall import _list_next_steps
from freehold.computer.contract.guest_archive import guest_archive
from freehold.home import find_home
from freehold.installed_version import CHOSEN, find_installation, run_current_version


def fill(harness: FreeholdHarness) -> Path:
    root = harness.home.root
    for name in ("vault", "workspace", "versions/1.0", "images/pool", "logs", "history"):
        (root / name).mkdir(parents=True)
    (root / "workspace" / "story").write_text("mine")
    (root / "images" / "pool" / "a").write_text("made again")
    return root


def uninstall(harness: FreeholdHarness, *words: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "freehold.cli.main", "uninstall", *words]
    return subprocess.run(
        command, env=harness.environment, input=typed, capture_output=True, text=True, timeout=100, check=False
    )


def test_the_data_is_kept_and_the_rest_is_named_and_removed(tmp_path: Path) -> None:
    harness, guest = FreeholdHarness(tmp_path), guest_archive()
    root = fill(harness)
    refused = uninstall(harness, typed="no\n")
    assert refused.returncode == 1
    assert (root / "images").exists()
    assert f"removes {root / 'images'}" in refused.stdout
    done = uninstall(harness, typed="yes\n")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in root.iterdir()) == ["history", "vault", "workspace"]
    assert (root / "workspace" / "story").read_text() == "mine"
    assert "pip uninstall freehold" in done.stdout
    assert os.geteuid() != 0 or guest.exists(), "other Freeholds of root use it"


def test_all_of_it_goes_only_when_its_place_is_typed(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    root = fill(harness)
    assert uninstall(harness, "--data", typed="yes\n").returncode == 1
    assert (root / "workspace" / "story").exists()
    assert uninstall(harness, "--data", typed=f"{root}\n").returncode == 0
    assert not root.exists()


def test_a_folder_that_is_no_home_is_not_removed(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    other = tmp_path / "photos"
    other.mkdir()
    (other / "one.jpg").write_text("x")
    done = uninstall(harness, "--data", "--yes", "--home", str(other))
    assert done.returncode == 1
    assert "is not the home of a Freehold" in done.stderr
    assert (other / "one.jpg").exists()


@pytest.mark.parametrize(
    ("started", "wanted"),
    [
        ("/home/me/.local/share/pipx/venvs/freehold", "pipx uninstall freehold"),
        ("/home/me/.local/share/uv/tools/freehold", "uv tool uninstall freehold"),
        ("/usr/lib/freehold", "apt remove freehold"),
        ("1", "remove it with what installed it"),
    ],
)
def test_after_an_upgrade_the_program_that_was_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: str, wanted: str
) -> None:
    """And not the environment of the upgrade, which is removed. A version that was older did not say where it is."""
    home = find_home(tmp_path)
    monkeypatch.setattr(sys, "prefix", str(home.root / "versions" / "9.1.0-0a1b2c3d"))
    monkeypatch.setattr("freehold.installed_version._chosen_by", "")
    monkeypatch.setenv(CHOSEN, started)
    run_current_version("freehold.cli.main", ["uninstall"])
    assert CHOSEN not in os.environ, "what it starts looks for itself"
    steps = _list_next_steps(find_installation(home))
    assert wanted in steps[0]
    assert str(home.root) not in steps[0]
