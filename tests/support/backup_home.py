"""A small home with something of everything that a backup has to bring back, made without starting Freehold."""

import hashlib
import os
import random
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from freehold.backup.age import AgeIdentity
from freehold.backup.keys import KeyStore
from freehold.backup.local_index import LocalIndex
from freehold.backup.recovery_state import write_recovery_state
from freehold.backup.repository import BackupRepository, open_with_recovery_key, set_up_store
from freehold.backup.restore import HomeRestore, choose_snapshot
from freehold.backup.run import BackupResult, BackupRun
from freehold.backup.stores.contract import BackupStore
from freehold.egress.vault import Vault
from freehold.history import History, HistorySettings
from freehold.home import Home
from freehold.keeper.agent_state import IGNORED_PATTERNS
from freehold.timeline import Timeline

ROOTS = ("workspace", "home", "pods")
_CTIME = 10
"""The place of this column."""
_TABLES = "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"


@dataclass
class BackupHome:
    """A home, its history, and the recovery key of its backups."""

    home: Home
    recovery: AgeIdentity

    def snapshot(self) -> None:
        with self.open_history() as history:
            history.snapshot()

    def open_history(self) -> History:
        roots = {name: self.home.root / name for name in ROOTS}
        return History(self.home.history, roots, HistorySettings(ignore=IGNORED_PATTERNS))

    def set_up(self, store: BackupStore) -> BackupRepository:
        key = KeyStore(self.home).make()
        set_up_store(store, key, self.recovery.recipient)
        write_recovery_state(self.home, str(self.recovery.recipient), tried=True)
        return BackupRepository(store, key)

    def back_up(self, store: BackupStore, **options: bool) -> BackupResult:
        with closing(LocalIndex(self.home.root / "backup", "tests")) as index:
            return BackupRun(self.home, BackupRepository(store, KeyStore(self.home).read()), index, self.snapshot).run(
                **options
            )

    def restore(self, store: BackupStore, folder: Path, number: int | None = None) -> Path:
        repository = open_with_recovery_key(store, self.recovery)
        HomeRestore(repository, choose_snapshot(repository, None, number), folder).run()
        return folder


def make_home(folder: Path, *, files: int = 12) -> BackupHome:
    """Every kind of file: small, large, with a hole, linked, hidden, with odd names; databases; agents' own state."""
    home = Home(folder / "home", folder / "run")
    for path in (home.root, home.vault, home.workspace, home.agent_home, home.pods):
        path.mkdir(mode=0o700, parents=True)
    made = BackupHome(home, AgeIdentity.generate())
    chance = random.Random(7)
    for number in range(files):
        place = home.workspace / f"folder-{number % 3}"
        place.mkdir(exist_ok=True)
        (place / f"file-{number}.txt").write_bytes(b"line %d\n" % number * chance.randrange(200))
    (home.workspace / "empty").write_bytes(b"")
    (home.workspace / "large.bin").write_bytes(chance.randbytes(300_000))
    with (home.workspace / "hole.bin").open("wb") as file:
        file.write(b"begin")
        file.seek(3 << 20)
        file.write(b"end")
    (home.workspace / "link").symlink_to("folder-0/file-0.txt")
    (home.workspace / "outside").symlink_to("/etc/passwd")
    os.link(home.workspace / "empty", home.workspace / "second-name")
    os.link(home.workspace / "large.bin", home.workspace / "folder-0" / "large-again.bin")
    Path(os.fsdecode(os.fsencode(home.workspace) + b"/odd-\xff-name")).write_text("odd")
    (home.workspace / "run.sh").write_text("#!/bin/sh\n")
    (home.workspace / "run.sh").chmod(0o755)
    state = home.agent_home / ".claude" / "projects"
    state.mkdir(parents=True)
    (state / "conversation.jsonl").write_text('{"said": "hello"}\n')
    (home.agent_home / ".claude.json").write_text("{}")
    (home.agent_home / ".claude" / "CLAUDE.md").write_text("instructions")
    (home.pods / "profile.ttl").write_text("<> a <#Person> .")
    home.manifest.write_text("# the manifest\n")
    home.image_lock.write_text("lock = 1\n")
    (home.root / "events").mkdir()
    (home.root / "events" / "000001.jsonl").write_text('{"id": 1}\n')
    Vault(home.vault).set("openai", "sk-the-real-key")
    with closing(sqlite3.connect(home.identity)) as identity:
        identity.execute("PRAGMA journal_mode = WAL")
        identity.execute("CREATE TABLE token (id TEXT)")
        identity.execute("INSERT INTO token VALUES ('t1')")
        identity.commit()
    (home.vault / "ssh").mkdir(mode=0o700)
    (home.vault / "ssh" / "authority").write_text("a private key")
    (home.vault / "ssh" / "authority").chmod(0o600)
    for left_out in ("logs", "agents", "images"):
        (home.root / left_out).mkdir()
        (home.root / left_out / "big").write_text("not needed")
    add_events(home, 5)
    made.snapshot()
    return made


def add_events(home: Home, count: int) -> None:
    with Timeline(home.timeline) as timeline:
        timeline.ensure_schema("tests", _TABLES)
        for number in range(count):
            with timeline.transaction() as transaction:
                transaction.execute("INSERT INTO note (text) VALUES (?)", (f"note {number}",))
                transaction.append("test.noted", {"number": number})


def describe_tree(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything that can be seen of each path: type, mode, time, links and bytes."""
    found: dict[str, tuple[object, ...]] = {}
    for path in _walk(folder):
        seen = path.lstat()
        name = os.fsencode(path.relative_to(folder)).decode("latin-1")
        if stat.S_ISLNK(seen.st_mode):
            found[name] = ("link", str(path.readlink()), seen.st_mtime_ns)
        elif stat.S_ISDIR(seen.st_mode):
            found[name] = ("folder", stat.S_IMODE(seen.st_mode), seen.st_mtime_ns)
        else:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[name] = ("file", stat.S_IMODE(seen.st_mode), seen.st_mtime_ns, seen.st_size, seen.st_nlink, digest)
    return found


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)


def describe_home(root: Path) -> dict[str, object]:
    """Everything that a backup brings back: files, history, timeline with sessions, vault, identity, manifest, locks."""
    trees = {name: describe_tree(root / name) for name in ("workspace", "home", "pods", "events")}
    databases = {name: dump_database(root / name) for name in ("timeline.db", "vault/identity.db", "vault/secrets.db")}
    files = {
        name: ((root / name).read_bytes(), (root / name).stat().st_mode)
        for name in (
            "freehold.toml",
            "freehold.lock",
            "vault/secrets.key",
            "vault/ssh/authority",
            "vault/timeline-head",
        )
    }
    history = read_history(root / "history")
    for table in (
        "version",
        "node_version",
    ):  # a later snapshot sets their ctime, once it can be told from a later change
        history[table] = [(*row[:_CTIME], *row[_CTIME + 1 :]) for row in history[table]]
    return {**trees, **databases, **files, "history": history}


def dump_database(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())


def read_history(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table of a history."""
    with closing(sqlite3.connect(folder / "history.db")) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
        return {name: sorted(database.execute(f"SELECT * FROM {name}"), key=repr) for name in tables}
