"""The owner needs no Freehold to get the files back: a script of 60 lines, age, zstd and the recovery key."""

import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.support.backup_home import BackupHome, describe_tree, dump_database

from freehold.backup.keys import KeyStore
from freehold.backup.local_index import LocalIndex
from freehold.backup.repository import BackupRepository
from freehold.backup.run import BackupRun
from freehold.backup.stores.folder import FolderStore

SCRIPT = Path(__file__).parents[2] / "docs" / "restore-backup.py"


def _run(store: Path, key: Path, target: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(SCRIPT), str(store), str(key), str(target), *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def _without_link_counts(tree: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    """The script writes each name of a file with several names as a file of its own."""
    return {name: seen[:4] + seen[5:] if seen[0] == "file" else seen for name, seen in tree.items()}


def test_the_script_restores_every_file(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    home = small_home.home
    (home.agent_home / ".claude" / "projects" / "long.jsonl").write_bytes(b"0123456789abcdef" * (70 << 16))
    small_home.set_up(store)
    small_home.back_up(store)
    key = tmp_path / "key.txt"
    key.write_text(small_home.recovery.reveal() + "\n")
    done = _run(tmp_path / "store", key, tmp_path / "target")
    assert done.returncode == 0, done.stderr
    for name in ("workspace", "home", "pods", "events"):
        assert _without_link_counts(describe_tree(tmp_path / "target" / name)) == _without_link_counts(
            describe_tree(home.root / name)
        ), name
    assert dump_database(tmp_path / "target" / "timeline.db") == dump_database(home.timeline)
    assert (tmp_path / "target" / "vault" / "secrets.key").read_bytes() == (home.vault / "secrets.key").read_bytes()
    assert not list((tmp_path / "target").glob("restore-*"))


def test_the_script_restores_a_home_that_never_ran(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    """There is no history then, and every file is in the list."""
    shutil.rmtree(small_home.home.history)
    small_home.set_up(store)
    with closing(LocalIndex(small_home.home.root / "backup", "tests")) as index:
        repository = BackupRepository(store, KeyStore(small_home.home).read())
        BackupRun(small_home.home, repository, index, lambda: None).run()
    key = tmp_path / "key.txt"
    key.write_text(small_home.recovery.reveal() + "\n")
    done = _run(tmp_path / "store", key, tmp_path / "target")
    assert done.returncode == 0, done.stderr
    restored = describe_tree(tmp_path / "target" / "workspace")
    assert _without_link_counts(restored) == _without_link_counts(describe_tree(small_home.home.workspace))


def test_the_script_refuses_what_was_changed(small_home: BackupHome, store: FolderStore, tmp_path: Path) -> None:
    small_home.set_up(store)
    small_home.back_up(store)
    key = tmp_path / "key.txt"
    key.write_text(small_home.recovery.reveal() + "\n")
    one, other = sorted(found.name for found in store.list_objects("packs/"))[:2]
    first, second = store.get(one), store.get(other)
    store.put(one, second)
    store.put(other, first)
    done = _run(tmp_path / "store", key, tmp_path / "target")
    assert done.returncode != 0
    assert "was changed" in done.stderr


def test_the_script_has_sixty_lines() -> None:
    """So that a person can read it before running it."""
    lines = SCRIPT.read_text().split('"""', 2)[2].splitlines()
    assert len([line for line in lines if line.strip()]) <= 60
