"""`freehold uninstall` removes what is made again, keeps the data, and removes that only when the owner types its place."""

import subprocess
import sys
from pathlib import Path

from tests.support.freehold import FreeholdHarness


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
    harness = FreeholdHarness(tmp_path)
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
