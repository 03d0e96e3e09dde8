"""Makes the home of somebody who has used Freehold for a year: `python -m tools.simulated_year HOME`.

With scale 1: 500 sessions, 50,000 turns, two million timeline events and 100,000 history entries. Rows of conversations
and of history are written in bulk; the timeline's events, the search index, and what folds, archives and collects old
records are Freehold's own code. `freehold timeline verify` and `freehold history verify` find nothing wrong.
"""

import argparse
import itertools
import json
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.rows import DraftEvent, SessionEventRow
from freehold.agents.sessions.search_index import index_events
from freehold.agents.sessions.store import SessionStore
from freehold.egress.models.ledger import ensure_tables
from freehold.egress.models.usage_rollup import roll_up_usage
from freehold.history import History, HistorySettings
from freehold.history.contents import ContentReader, ContentStore
from freehold.history.database import open_database, transaction
from freehold.history.entries import EntryWriter
from freehold.history.garbage_collection import GarbageCollector
from freehold.history.model import Author
from freehold.home import Home, find_home
from freehold.keeper.paths import prepare_folders, prepare_root
from freehold.manifest.sections.retention import RetentionSection
from freehold.timeline import Timeline, Transaction
from freehold.timeline.archiver import archive_events
from freehold.timeline.timeline import format_instant

DAYS = 365
COLLECT_DAYS = 7
CHANGED_FILES = 20
FILES = 200
RARE_WORD = "quixotic"
"""In one message of every hundred turns."""
COMMON_WORD = "ordinary"
"""In every message."""
_AGENTS = ("builtin", "claude", "codex")
_FILLER = ("egress.request_allowed", "egress.request_allowed", "egress.request_refused", "history.snapshot_taken")


@dataclass(frozen=True)
class YearAmounts:
    """How much there is of everything."""

    sessions: int
    turns: int
    events: int
    entries: int
    days: int = DAYS

    def share(self, total: int, day: int) -> int:
        """How many of `total` come on this day, so that all days together have all of them."""
        return total * (day + 1) // self.days - total * day // self.days


def scaled_amounts(scale: float) -> YearAmounts:
    def at_least(count: int, least: int) -> int:
        return max(least, round(count * scale))

    return YearAmounts(at_least(500, 3), at_least(50_000, 30), at_least(2_000_000, 2000), at_least(100_000, 50))


class Prose:
    """Text of words whose frequencies fall as in a language."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        letters = "etaoinshrdlucmfwypvbgk"
        self._words = ["".join(chance.choices(letters, k=chance.randint(2, 10))) for _ in range(20_000)]
        self._weights = list(itertools.accumulate(1 / (place + 1) for place in range(len(self._words))))

    def write(self, length: int) -> str:
        return " ".join(self._chance.choices(self._words, cum_weights=self._weights, k=length))


class YearOfConversations:
    """Sessions with their turns, events and usage, and everything in the timeline."""

    def __init__(self, home: Home, amounts: YearAmounts, chance: random.Random, start: datetime) -> None:
        self._amounts = amounts
        self._chance = chance
        self._start = start
        self._moment = start
        self._prose = Prose(chance)
        self._sessions: list[str] = []
        self._seqs: dict[str, tuple[int, int]] = {}
        self._turns = 0
        self.timeline = Timeline(home.timeline, clock=lambda: self._moment)
        SessionStore(self.timeline).prepare()
        ensure_tables(self.timeline)

    def write_day(self, day: int) -> None:
        """One day in one transaction."""
        begin = self._start + timedelta(days=day)
        turns, events = self._amounts.share(self._amounts.turns, day), self._amounts.share(self._amounts.events, day)
        step = timedelta(days=1) / (events + 1)
        with self.timeline.transaction() as tx:
            ((before,),) = tx.execute("SELECT seq FROM head").fetchall()
            self._moment = begin
            for _ in range(self._amounts.share(self._amounts.sessions, day)):
                self._open(tx)
            for _ in range(turns if self._sessions else 0):
                self._write_turn(tx)
                self._moment += timedelta(days=1) / (turns + 1)
            ((done,),) = tx.execute("SELECT seq FROM head").fetchall()
            for number in range(events - (done - before)):
                self._moment = begin + step * number
                data: Json = {"host": f"host{self._chance.randrange(300)}.example", "port": 443, "bytes": number * 37}
                tx.append(_FILLER[number % len(_FILLER)], data, who=f"agent:{_AGENTS[number % 3]}")

    def _open(self, tx: Transaction) -> None:
        number = len(self._sessions) + 1
        session, at = f"{number:016x}", format_instant(self._moment)
        agent = _AGENTS[number % len(_AGENTS)]
        tx.execute(
            "INSERT INTO agents_session (id, title, named, agent, model, status, created, updated, archived, number) "
            "VALUES (?, ?, 0, ?, NULL, 'idle', ?, ?, ?, ?)",
            (session, self._prose.write(5), agent, at, at, number % 10 == 0, number),
        )
        tx.append("session.opened", {"session": session, "agent": agent}, who="owner")
        self._sessions.append(session)
        self._seqs[session] = (0, 0)

    def _write_turn(self, tx: Transaction) -> None:
        session = self._chance.choice(self._sessions[-40:])
        seq, turn = self._seqs[session]
        turn += 1
        self._turns += 1
        at = format_instant(self._moment)
        rare = f" {RARE_WORD}" if self._turns % 100 == 0 else ""
        prompt: Json = {"text": self._prose.write(25), "files": [], "images": []}
        usage: Json = {"requests": 2, "input": 4000, "output": 300, "cached": 3000, "cost": 0.01}
        tool: Json = {
            "id": "t",
            "title": "Read src/page.ts",
            "kind": "read",
            "status": "completed",
            "output": "x" * 400,
        }
        drafts: tuple[DraftEvent, ...] = (
            ("turn.started", {"prompt": prompt, "key": f"k{turn}"}),
            ("message", {"text": f"{COMMON_WORD} {self._prose.write(60)}{rare}", "id": "m1", "role": "agent"}),
            ("tool", tool),
            ("message", {"text": f"{self._prose.write(90)} {COMMON_WORD}", "id": "m2", "role": "agent"}),
            ("turn.ended", {"stop_reason": "end_turn", "changes": None, "usage": usage}),
        )
        rows = [
            SessionEventRow(seq + place, at, turn, kind, data) for place, (kind, data) in enumerate(drafts, start=1)
        ]
        for row in rows:
            tx.execute(
                "INSERT INTO agents_event (session, seq, at, turn, kind, data) VALUES (?, ?, ?, ?, ?, ?)",
                (session, row.seq, at, turn, row.kind, json.dumps(row.data)),
            )
        index_events(tx, session, rows)
        tx.execute(
            "INSERT INTO agents_turn (session, turn, key, prompt, state, place) VALUES (?, ?, ?, ?, 'ended', ?)",
            (session, turn, f"k{turn}", json.dumps(prompt), turn),
        )
        tx.execute(
            "UPDATE agents_session SET seq = ?, turns = ?, updated = ?, news = ?, seen = ?, cost = coalesce(cost, 0) + 0.01 "
            "WHERE id = ?",
            (rows[-1].seq, turn, at, rows[-1].seq, rows[-1].seq, session),
        )
        self._seqs[session] = (rows[-1].seq, turn)
        self._record_turn(tx, session, turn, at, prompt, usage)

    def _record_turn(self, tx: Transaction, session: str, turn: int, at: str, prompt: Json, usage: Json) -> None:
        told: Json = {"session": session, "turn": turn}
        tx.append("turn.started", {**told, "text": prompt["text"]}, who="agent:builtin")
        for number in range(2):
            tx.execute(
                "INSERT INTO models_usage (at, provider, model, session, turn, input, output, cached, written, cost, "
                "estimated, outcome) VALUES (?, 'anthropic', ?, ?, ?, 2000, 150, 1500, 0, 0.005, 0, 'answered')",
                (at, ("large", "small")[number], session, str(turn)),
            )
            tx.append("models.answered", {**told, "provider": "anthropic", "input": 2000, "output": 150, "cost": 0.005})
        tx.append("tool.ended", {**told, "title": "Read src/page.ts", "kind": "read", "status": "completed"})
        tx.append("turn.ended", {**told, "stop_reason": "end_turn", "usage": usage}, who="agent:builtin")


class YearOfHistory:
    """Entries that each change one file, collected as time passes. The files on disk are those of the last entry."""

    def __init__(self, home: Home, amounts: YearAmounts, start: datetime) -> None:
        self._home = home
        self._amounts = amounts
        self._start = start.timestamp()
        self._folder = home.history
        self._roots = {"workspace": home.workspace, "home": home.agent_home}
        self._written = 0
        self._originals: list[bytes] = []

    def write(self) -> None:
        for number in range(FILES):
            folder = self._home.workspace / f"part{number // 20}"
            folder.mkdir(exist_ok=True)
            (folder / f"file{number}.txt").write_text(f"file {number}\n" * 20)
        with History(self._folder, self._roots, HistorySettings(quiet=0)) as history:
            history.snapshot()
        with closing(open_database(self._folder / "history.db")) as db:
            db.execute("PRAGMA synchronous = OFF")  # a year that is cut short is made again
            db.execute("UPDATE entry SET at = ?", (self._start,))
            places = _choose_places(db)
            reader = ContentReader(db, self._folder / "chunks")
            self._originals = [reader.read(row[4]) for row in places]
            for first in range(0, self._amounts.days, COLLECT_DAYS):
                for day in range(first, min(self._amounts.days, first + COLLECT_DAYS)):
                    self._write_day(db, day, places)
                collector = GarbageCollector(db, threading.RLock(), ContentStore(db, self._folder / "chunks"))
                collector.thin_entries(self._start + (first + COLLECT_DAYS) * 86_400.0)
                collector.remove_unreferenced()
            self._return_to_disk(db, places)
        with History(self._folder, self._roots, HistorySettings(quiet=0)) as history:
            history.collect(now=self._start + self._amounts.days * 86_400.0)

    def _write_day(self, db: sqlite3.Connection, day: int, places: list[tuple[int, ...]]) -> None:
        count = self._amounts.share(self._amounts.entries, day)
        contents, entries = ContentStore(db, self._folder / "chunks"), EntryWriter(db)
        with transaction(db):
            first = entries.newest() + 1
            for number in range(count):
                self._written += 1
                data = f"state {self._written} of this file\n".encode() * 20
                row = places[self._written % len(places)]
                at = self._start + (day + (number + 1) / (count + 1)) * 86_400.0
                author = Author("agent", agent="builtin", session="1", turn=str(self._written))
                _write_entry(db, entries, first + number, at, author, (row, contents.add_content(data), len(data)))
            contents.flush()

    def _return_to_disk(self, db: sqlite3.Connection, places: list[tuple[int, ...]]) -> None:
        contents, entries = ContentStore(db, self._folder / "chunks"), EntryWriter(db)
        with transaction(db):
            for row, data in zip(places, self._originals, strict=True):
                end = self._start + self._amounts.days * 86_400.0
                change = row, contents.add_content(data), row[3]
                _write_entry(db, entries, entries.newest() + 1, end, Author("owner"), change)
            contents.flush()


def _choose_places(db: sqlite3.Connection) -> list[tuple[int, ...]]:
    """Some files as they are on disk: place, mode, mtime, size, content, flag, ino, ctime, nlink."""
    return db.execute(
        "SELECT place, mode, mtime, size, content, flag, ino, ctime, nlink FROM version "
        "WHERE died IS NULL AND content IS NOT NULL AND node = 0 ORDER BY place LIMIT ?",
        (CHANGED_FILES,),
    ).fetchall()


def _write_entry(
    db: sqlite3.Connection,
    entries: EntryWriter,
    entry: int,
    at: float,
    author: Author,
    change: tuple[tuple[int, ...], int, int],
) -> None:
    (place, mode, mtime, _, _, flag, ino, ctime, nlink), content, size = change
    entries.begin(entry, at, "quiet", author, "")
    db.execute("UPDATE version SET died = ? WHERE place = ? AND died IS NULL", (entry, place))
    db.execute(
        "INSERT INTO version (place, born, mode, mtime, size, content, flag, ino, ctime, nlink) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (place, entry, mode, mtime, size, content, flag, ino, ctime, nlink),
    )
    entries.complete(entry, (0, 1, 0), [])
    entries.set_lines(entry, 20, 20)


def make_year(home: Home, amounts: YearAmounts, *, seed: int = 0, tell: Callable[[str], None] = lambda _: None) -> None:
    """Fills a home that does not exist yet. Blocking; minutes with scale 1."""
    now = datetime.now(UTC)
    start = now - timedelta(days=amounts.days)
    prepare_root(home)
    prepare_folders(home)
    with _told("history", tell):
        YearOfHistory(home, amounts, start).write()
    with _told("conversations and timeline", tell):
        year = YearOfConversations(home, amounts, random.Random(seed), start)
        for day in range(amounts.days):
            year.write_day(day)
        year.timeline.close()
    with Timeline(home.timeline) as timeline:
        with _told("old usage", tell):
            roll_up_usage(timeline, now)
        with _told("archive", tell):
            archive_events(timeline, now - timedelta(seconds=RetentionSection().timeline))


@contextmanager
def _told(what: str, tell: Callable[[str], None]) -> Iterator[None]:
    began = time.perf_counter()
    yield
    tell(f"{what}: {time.perf_counter() - began:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the home of a year of use.")
    parser.add_argument("home", type=Path, help="a folder that does not exist yet")
    parser.add_argument("--scale", type=float, default=1.0, help="1 is a year of much use; 0.01 takes seconds")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.home.exists():
        parser.error(f"{given.home} exists already; name a new folder")
    amounts = scaled_amounts(given.scale)
    make_year(find_home(given.home), amounts, seed=given.seed, tell=lambda line: print(line, flush=True))
    print(json.dumps(asdict(amounts)))


if __name__ == "__main__":
    main()
