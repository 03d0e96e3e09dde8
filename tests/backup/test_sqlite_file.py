"""A database is read as it was at one moment, while others write to it and move its journal."""

import os
import random
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

READER = """
import sqlite3, sys
from pathlib import Path
from freehold.backup.sqlite_file import SqliteFile
for number in range(int(sys.argv[3])):
    found = SqliteFile(Path(sys.argv[1]), max_copied=0)
    copy = Path(f"{sys.argv[2]}-{number}")
    copy.write_bytes(b"".join(found.read_blocks(65536)))
    found.close()
    database = sqlite3.connect(copy)
    assert database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    total, added = database.execute("SELECT total, (SELECT coalesce(sum(amount), 0) FROM item) FROM balance").fetchone()
    assert total == added, (total, added)
    database.close()
    copy.unlink()
print("consistent")
"""


def test_every_copy_is_one_committed_state(tmp_path: Path) -> None:
    """The writer keeps a sum of all rows, spills, rolls back, and begins the journal anew at random."""
    path = tmp_path / "busy.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, amount INTEGER, filler BLOB)")
        database.execute("CREATE TABLE balance (total INTEGER)")
        database.execute("INSERT INTO balance VALUES (0)")
    over = threading.Event()

    def write() -> None:
        chance = random.Random(3)
        with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as writer:
            writer.execute("PRAGMA cache_size = 5")  # so that pages of an open transaction are in the journal
            while not over.is_set():
                writer.execute("BEGIN IMMEDIATE")
                for _ in range(chance.randrange(1, 30)):
                    amount = chance.randrange(1000)
                    writer.execute(
                        "INSERT INTO item (amount, filler) VALUES (?, ?)", (amount, os.urandom(chance.randrange(3000)))
                    )
                    writer.execute("UPDATE balance SET total = total + ?", (amount,))
                if chance.random() < 0.3:
                    writer.execute("UPDATE balance SET total = 0")
                    writer.execute("DELETE FROM item")
                writer.execute("ROLLBACK" if chance.random() < 0.2 else "COMMIT")
                if chance.random() < 0.1:
                    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        command = [sys.executable, "-c", READER, str(path), str(tmp_path / "copy"), "30"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    finally:
        over.set()
        thread.join()
    assert done.stdout == "consistent\n", done.stderr
