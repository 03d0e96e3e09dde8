"""The home of a released version, with its conversations, and with memories and work items: killed at any step of a backup."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.golden.test_golden_home import HERE, unpack
from tests.support.backup_home import BackupHome, describe_tree, dump_database, read_history
from tests.support.backup_stores import DeathAt, WatchedStore, copy_tree, run_in_child

from freehold.backup.age import AgeIdentity
from freehold.backup.job import take_snapshot
from freehold.backup.repository import open_with_recovery_key
from freehold.backup.stores.folder import FolderStore
from freehold.home import Home

MAX_STEPS = 200
_CTIME = 10
FILES = ("freehold.toml", "vault/secrets.key", "vault/preview.key", "vault/ssh/authority", "vault/ssh/host")
SLOTS = '\n[slots]\nmemory = "local"\nbeads = "local"\n'


class LivedInHome(BackupHome):
    """Its history is asked as the job of a backup does."""

    def snapshot(self) -> None:
        take_snapshot(self.home)

    def run(self, *words: str, root: Path | None = None) -> str:
        command = [sys.executable, "-m", "freehold.cli.main", *words, "--home", str(root or self.home.root)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def lived_in(tmp_path: Path) -> LivedInHome:
    unpack(HERE / "0.1.0" / "home.tar.gz", tmp_path)
    home = Home(tmp_path / "home", tmp_path / "run")
    with home.manifest.open("a") as manifest:
        manifest.write(SLOTS)
    home.run.mkdir(mode=0o700)
    made = LivedInHome(home, AgeIdentity.generate())
    made.run("memory", "add", "I prefer aisle seats", "--pin")
    made.run("beads", "create", "Mend the roof", "--label", "house")
    made.snapshot()
    return made


def describe(root: Path) -> dict[str, object]:
    """Bytes of files, and every row: of the timeline with sessions, memories and work items, of sign-ins, and of history."""
    workspace = describe_tree(root / "workspace")
    workspace.pop("disk.iso", None)  # history.ignore names it
    history = read_history(root / "history")
    for table in ("version", "node_version"):
        history[table] = [(*row[:_CTIME], *row[_CTIME + 1 :]) for row in history[table]]
    return {
        "workspace": workspace,
        "agent": describe_tree(root / "home" / ".freehold"),
        "timeline": dump_database(root / "timeline.db"),
        "identity": dump_database(root / "vault/identity.db"),
        "secrets": dump_database(root / "vault/secrets.db"),
        "history": history,
        **{name: ((root / name).read_bytes(), (root / name).stat().st_mode) for name in FILES},
    }


def test_a_lived_in_home_comes_back_from_a_backup_killed_at_any_step(lived_in: LivedInHome, tmp_path: Path) -> None:
    home, live = lived_in.home, tmp_path / "store"
    lived_in.set_up(FolderStore(live))
    lived_in.back_up(FolderStore(live))
    first = describe(home.root)
    with closing(sqlite3.connect(home.timeline)) as timeline:
        timeline.execute("UPDATE agents_session SET title = title || ' (renamed)'")
        timeline.commit()
    lived_in.run("memory", "add", "The passport expires in 2031")
    lived_in.run("beads", "create", "Paint the fence")
    (home.workspace / "README.md").write_text("changed\n")
    (home.workspace / "new.bin").write_bytes(os.urandom(300_000))
    conversation = next((home.agent_home / ".freehold/sessions").glob("*.json"))
    conversation.write_text(conversation.read_text() + "\n")
    lived_in.snapshot()
    second = describe(home.root)
    assert all(first[name] != second[name] for name in ("workspace", "agent", "timeline", "history"))
    kept_store, kept_state = tmp_path / "kept-store", tmp_path / "kept-state"
    copy_tree(live, kept_store)
    copy_tree(home.root / "backup", kept_state)

    for step in range(MAX_STEPS):
        copy_tree(kept_store, live)
        copy_tree(kept_state, home.root / "backup")
        death = DeathAt(step)
        ended = run_in_child(lambda death=death: lived_in.back_up(WatchedStore(FolderStore(live), death)))  # type: ignore[misc]
        newest = max(open_with_recovery_key(FolderStore(live), lived_in.recovery).list_meta().snapshots)
        restored = lived_in.restore(FolderStore(live), tmp_path / f"killed-{step}")
        assert describe(restored) == (first if newest == 1 else second)
        if ended:
            break
    else:
        raise AssertionError("the backup never came to its end")
    assert step > 10, "too few steps were tried"
    assert "The passport expires in 2031" in lived_in.run("memory", root=restored)
    titles = {one["title"] for one in json.loads(lived_in.run("beads", "--json", root=restored))}
    assert titles == {"Mend the roof", "Paint the fence"}
