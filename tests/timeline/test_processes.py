"""Several real processes write at the same time, and are killed while they write."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from freehold.timeline import Timeline
from freehold.timeline.database import FORMAT, check_format

# Says every number on its pipe only after the event was acknowledged. State and event go together.
WRITER = """
import os, sys
from freehold.timeline import Timeline
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
timeline = Timeline(path)
timeline.ensure_schema("test", "CREATE TABLE test_sum (name TEXT PRIMARY KEY, total INTEGER NOT NULL)")
for number in range(count):
    with timeline.transaction() as tx:
        tx.execute("INSERT INTO test_sum VALUES (?, 1) ON CONFLICT DO UPDATE SET total = total + 1", (name,))
        event = tx.append("test.counted", {"number": number}, who=name)
    os.write(1, b"%d\\n" % event.seq)
"""


def start(path: Path, name: str, count: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", WRITER, path, name, str(count)], stdout=subprocess.PIPE)


def acknowledged(writer: "subprocess.Popen[bytes]") -> list[int]:
    assert writer.stdout is not None
    with writer.stdout:
        lines = writer.stdout.read().split(b"\n")
    writer.wait()
    return [int(line) for line in lines[:-1]]  # what is after the last line end was cut short


def test_processes_that_start_and_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    writers = [start(path, f"writer-{name}", 40) for name in range(4)]
    seqs = [seq for writer in writers for seq in acknowledged(writer)]
    assert [writer.returncode for writer in writers] == [0] * 4
    assert sorted(seqs) == list(range(1, 161))
    with Timeline(path) as timeline:
        assert timeline.verify() == []
        assert len(timeline.read()) == 160


def test_kill_9_in_the_middle_of_writes_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Thirty rounds, three writers each, every one killed at a moment of its own."""
    path = tmp_path / "timeline.db"
    chance = random.Random(2)
    seen: set[int] = set()
    for round_number in range(30):
        writers = [start(path, f"writer-{round_number}-{name}", 100_000) for name in range(3)]
        for writer in writers:
            assert writer.stdout is not None
            first = os.read(writer.stdout.fileno(), chance.randint(1, 4000))
            complete = first.rpartition(b"\n")[0]
            seen.update(int(line) for line in complete.split(b"\n") if complete)
            writer.send_signal(signal.SIGKILL)
            rest = first.rpartition(b"\n")[2]
            with writer.stdout:
                lines = (rest + writer.stdout.read()).split(b"\n")
            seen.update(int(line) for line in lines[:-1])
            assert writer.wait() == -signal.SIGKILL
    with Timeline(path) as timeline:
        ((written,),) = timeline.query("SELECT count(*) FROM event")
        stored = {seq for (seq,) in timeline.query("SELECT seq FROM event")}
        assert seen <= stored
        assert stored == set(range(1, written + 1))
        assert timeline.verify() == []
        assert timeline.query("SELECT sum(total) FROM test_sum") == [(written,)]
        assert timeline.append("test.ended").seq == written + 1


def test_a_write_that_was_killed_before_its_commit_is_not_stored(tmp_path: Path) -> None:
    path = tmp_path / "timeline.db"
    code = """
import os, signal, sys
from freehold.timeline import Timeline

with Timeline(sys.argv[1]) as timeline, timeline.transaction() as tx:
    tx.append("test.counted")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    with Timeline(path) as timeline:
        assert subprocess.run([sys.executable, "-c", code, path]).returncode == -signal.SIGKILL
        assert timeline.last() is None
        assert timeline.append("test.counted").seq == 1
        assert timeline.verify() == []


def test_a_timeline_that_another_process_makes_meanwhile_is_not_taken_for_a_foreign_one(tmp_path: Path) -> None:
    """The tables appear between two looks of the first process at the new file."""
    path = tmp_path / "timeline.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    made: list[str] = []

    def make_tables(statement: str) -> None:
        if statement == "PRAGMA user_version" and not made:
            made.append(statement)
            subprocess.run([sys.executable, "-c", WRITER, path, "other", "1"], check=True, capture_output=True)

    connection.set_trace_callback(make_tables)
    try:
        assert check_format(connection, path) == 0
        assert made
        connection.set_trace_callback(None)
        assert check_format(connection, path) == FORMAT
    finally:
        connection.close()
