"""The cost of a small change does not grow with the tree: no statement of it reads a whole table."""

import sqlite3
from pathlib import Path

from tests.history.tree import write

from freehold.history import History

SMALL = ("SCAN intent", "SCAN touched")
"""Read whole on purpose: an interrupted restore, and what one step of an undo touches."""
FLAGGED = ("SCAN version USING INDEX version_flag", "SCAN node_version USING INDEX node_version_flag")
"""These indexes have only what could not be stored."""


def find_scans(db: sqlite3.Connection, statements: list[str]) -> list[str]:
    found = []
    for statement in dict.fromkeys(statements):
        if statement.split(None, 1)[0] in ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH"):
            plan = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + statement)]
            found += [
                f"{step}: {statement}" for step in plan if step.startswith("SCAN") and step not in SMALL + FLAGGED
            ]
    return found


def test_no_statement_of_a_snapshot_or_an_undo_reads_a_whole_table(history: History, workspace: Path) -> None:
    """With a linked file, a large file, and one that is gone, since each has statements of its own."""
    for number in range(30):
        write(workspace / f"folder{number % 3}" / f"file{number}", b"before %d" % number)
    write(workspace / "large", bytes(range(256)) * 1024)
    (workspace / "link").hardlink_to(workspace / "folder0" / "file0")
    history.snapshot()
    statements: list[str] = []
    history._db.set_trace_callback(statements.append)
    write(workspace / "folder0" / "file0", b"after")
    write(workspace / "folder1" / "file1", b"after")
    write(workspace / "large", bytes(range(255)) * 1024)
    (workspace / "folder2" / "file2").unlink()
    history.snapshot("turn")
    history.undo()
    history._db.set_trace_callback(None)
    assert any("INSERT INTO version" in one for one in statements)
    assert find_scans(history._db, statements) == []
