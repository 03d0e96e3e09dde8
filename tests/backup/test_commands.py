"""The commands as an owner runs them: key, now, list, status, verify, prune, restore-from, export, import."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.backup_home import BackupHome, add_events, describe_tree

from freehold.backup.status import read_status
from freehold.timeline import Timeline


class Owner:
    """Runs commands on one home."""

    def __init__(self, small_home: BackupHome, place: Path) -> None:
        self.home = small_home.home
        self.place = place
        self.home.manifest.write_text(f'[backup]\nto = "{place}"\nhourly = 1\ndaily = 1\nweekly = 1\n')

    def run(self, *words: str, typed: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "freehold.cli.main", *words]
        if "--home" not in words:
            command += ["--home", str(self.home.root)]
        settings = {**os.environ, **environment}
        return subprocess.run(
            command, input=typed, env=settings, capture_output=True, text=True, timeout=120, check=False
        )

    def read(self, *words: str, typed: str = "") -> object:
        done = self.run(*words, "--json", typed=typed)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def make_key(self) -> str:
        done = self.run("backup", "key")
        assert done.returncode == 0, done.stderr
        return next(line.strip() for line in done.stdout.splitlines() if "AGE-SECRET-KEY-1" in line)


@pytest.fixture
def owner(small_home: BackupHome, tmp_path: Path) -> Owner:
    return Owner(small_home, tmp_path / "place")


def test_from_the_set_up_to_a_restored_home(owner: Owner, tmp_path: Path) -> None:
    before = owner.run("backup", "now")
    assert before.returncode == 1
    assert "freehold backup key" in before.stderr

    key = owner.make_key()
    assert key not in owner.run("backup", "key").stdout, "it is shown once"
    assert key.encode() not in b"".join(path.read_bytes() for path in owner.home.vault.iterdir() if path.is_file())
    tried = owner.read("backup", "key", "--try", typed=f"{key}\n")
    assert isinstance(tried, dict)
    assert tried["tried"] is not None
    wrong = owner.run("backup", "key", "--try", typed=key[:-1] + ("P\n" if key.endswith("Q") else "Q\n"))
    assert wrong.returncode == 1
    assert "no recovery key" in wrong.stderr

    assert "Backup 1 is complete" in owner.run("backup", "now").stdout
    assert "Nothing has changed" in owner.run("backup", "now").stdout
    add_events(owner.home, 1)
    assert "Backup 2 is complete" in owner.run("backup", "now").stdout
    listed = owner.read("backup", "list")
    assert isinstance(listed, list)
    assert [one["number"] for one in listed] == [2, 1]
    assert "No damage found" in owner.run("backup", "verify", "--all").stdout
    assert "No damage found" in owner.run("backup", "verify", "--restore").stdout
    assert "1 backups kept, 1 removed" in owner.run("backup", "prune").stdout
    assert owner.run("backup", "status").returncode == 0
    with Timeline(owner.home.timeline, readonly=True) as timeline:
        kinds = [event.kind for event in timeline.read(after=0, kinds=["backup.*"])]
    assert kinds == [
        "backup.key_made", "backup.completed", "backup.completed", "backup.verified", "backup.rehearsed", "backup.pruned",
    ]  # fmt: skip

    into = tmp_path / "moved"
    done = owner.run("restore-from", str(owner.place), "--into", str(into), FREEHOLD_RECOVERY_KEY=key)
    assert done.returncode == 0, done.stderr
    assert f"Restored {listed[0]['files']:,} files" in done.stdout, "as many as the backup said"
    assert f"freehold up --home {into}" in done.stdout
    assert describe_tree(into / "workspace") == describe_tree(owner.home.workspace)
    moved = owner.run("backup", "now", "--home", str(into))
    assert moved.returncode == 1
    assert str(owner.home.root) in moved.stderr
    assert "Backup 3 is complete" in owner.run("backup", "now", "--take-over", "--home", str(into)).stdout


def test_no_key_is_shown_for_a_place_that_does_not_answer(owner: Owner, tmp_path: Path) -> None:
    """A key that was written down and opens nothing would be worse than none."""
    (tmp_path / "file").write_text("no folder")
    for section, code in (("", "backup.off"), (f'to = "{tmp_path}/file"', "backup.")):
        owner.home.manifest.write_text(f"[backup]\n{section}\n")
        done = owner.run("backup", "key")
        assert done.returncode == 1
        assert code in done.stderr
        assert "AGE-SECRET-KEY" not in done.stdout


def test_a_failure_is_noted_for_the_health_and_the_timeline(owner: Owner) -> None:
    owner.make_key()
    owner.run("backup", "now")
    for path in owner.place.glob("meta/snapshots/*"):
        path.unlink()
    add_events(owner.home, 1)
    assert "has lost backups" in owner.run("backup", "now").stderr
    assert owner.run("backup", "now").returncode == 1
    status = read_status(owner.home)
    assert status.failure is not None
    assert status.failure.code == "backup.rolled-back"
    shown = owner.run("backup", "status")
    assert shown.returncode == 1
    assert "has lost backups" in shown.stdout
    with Timeline(owner.home.timeline, readonly=True) as timeline:
        assert len(timeline.read(after=0, kinds=["backup.failed"])) == 1, "once for a row of failures"
    assert owner.run("backup", "now", "--accept-loss").returncode == 0
    assert read_status(owner.home).failure is None


def test_a_key_of_the_owners_own_is_used(owner: Owner, tmp_path: Path) -> None:
    """Made by age-keygen on another machine; its secret half was never here."""
    subprocess.run(["age-keygen", "-o", tmp_path / "mine.txt"], capture_output=True, check=True)
    recipient = (tmp_path / "mine.txt").read_text().split("public key: ")[1].split()[0]
    assert owner.run("backup", "key", "--recipient", recipient).returncode == 0
    assert owner.run("backup", "now").returncode == 0
    into = tmp_path / "restored"
    done = owner.run("restore-from", str(owner.place), "--into", str(into), "--key-file", str(tmp_path / "mine.txt"))
    assert done.returncode == 0, done.stderr
    assert describe_tree(into / "pods") == describe_tree(owner.home.pods)


def test_the_whole_goes_into_one_file_and_back(owner: Owner, tmp_path: Path) -> None:
    exported = owner.read("export", str(tmp_path / "freehold.tar"))
    assert isinstance(exported, dict)
    again = owner.run("export", str(tmp_path / "freehold.tar"))
    assert again.returncode == 1
    assert "exists already" in again.stderr
    into = tmp_path / "imported"
    done = owner.run(
        "import", str(tmp_path / "freehold.tar"), "--into", str(into), typed=f"{exported['recovery_key']}\n"
    )
    assert done.returncode == 0, done.stderr
    for name in ("workspace", "home", "pods"):
        assert describe_tree(into / name) == describe_tree(owner.home.root / name)
    assert [path.name for path in tmp_path.iterdir() if "draft" in path.name] == []


def test_an_export_opens_with_the_recovery_key_of_the_backups(owner: Owner, tmp_path: Path) -> None:
    key = owner.make_key()
    exported = owner.read("export", str(tmp_path / "freehold.tar"))
    assert isinstance(exported, dict)
    assert exported["recovery_key"] is None
    done = owner.run("import", str(tmp_path / "freehold.tar"), "--into", str(tmp_path / "in"), typed=f"{key}\n")
    assert done.returncode == 0, done.stderr
