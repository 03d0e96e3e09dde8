"""What was changed while nothing was watched begins its runs, in order and within bounds."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal

import pytest
from tests.routines.conftest import StoreBench
from tests.support.condition import until

from freehold.errors import FreeholdError
from freehold.history.calls import ChangedPath, EntryChanges, EntryList, ListEntries, ListEntryChanges
from freehold.history.model import Author, EntryRecord
from freehold.routines import file_watch
from freehold.routines.file_watch import POSITION, FileWatch


class Entries:
    """History's side of the keeper: entries of which each has changed so many files of the inbox."""

    def __init__(self, count: int, files: int = 1) -> None:
        self.entries = [
            EntryRecord(id, 0.0, "turn", Author(), "", files, 0, 0, None, None, False, 0, ())
            for id in range(1, count + 1)
        ]
        self.files = files
        self.most = 5000

    async def call(self, call: Any, *, timeout: float | None = None) -> Any:
        if isinstance(call, ListEntries):
            older = [one for one in reversed(self.entries) if call.before is None or one.id < call.before]
            return EntryList(tuple(older[: call.limit]))
        assert isinstance(call, ListEntryChanges)
        shown = min(self.files, call.limit, self.most)
        paths = [ChangedPath(f"workspace/inbox/{call.entry}-{number}", "added", "file") for number in range(shown)]
        return EntryChanges(self.entries[call.entry - 1], tuple(paths), self.files)


def make_watch(stores: StoreBench, entries: Entries | None = None, key: str | None = None) -> FileWatch:
    """`key` is that of the prompt that began any turn."""

    async def wait(_seconds: float | None) -> None:
        return

    def find_key(session: str, turn: int) -> str:
        if key is None:
            raise FreeholdError("turn.not-found", f"{session} has no turn {turn}")
        return key

    return FileWatch(stores.runs, entries or Entries(0), wait, find_key)  # type: ignore[arg-type] # it only calls


async def read(stores: StoreBench, entries: Entries, seen: int) -> Sequence[int]:
    """Which entries have begun a run, in this order."""
    if not stores.routines.find("r"):
        stores.add(files=["inbox/*"], most_per_hour=3600)
    stores.routines.save_position(POSITION, str(seen))

    watch = make_watch(stores, entries)
    assert await watch._read_entries()
    assert stores.routines.read_position(POSITION) == str(entries.entries[-1].id)
    return [run.data["entry"] for run in reversed(stores.runs.list_runs("r", limit=10_000))]


async def test_every_entry_begins_its_run_however_many_there_are(stores: StoreBench) -> None:
    assert await read(stores, Entries(450), 10) == list(range(11, 451))
    assert "routine.changes_unread" not in stores.kinds()


@pytest.mark.parametrize("count", [199, 200, 201, 400])
async def test_the_first_entries_of_a_history_are_read_too(stores: StoreBench, count: int) -> None:
    assert await read(stores, Entries(count), 0) == list(range(1, count + 1))
    assert "routine.changes_unread" not in stores.kinds()


async def test_a_file_among_thousands_in_one_entry_begins_a_run(stores: StoreBench) -> None:
    await read(stores, Entries(2, files=4000), 1)
    (run,) = stores.runs.list_runs("r")
    assert (run.data["count"], len(run.data["paths"])) == (4000, 100)


async def test_what_is_beyond_the_bounds_is_recorded_and_not_lost_in_silence(
    stores: StoreBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_watch, "PAGE", 2)
    monkeypatch.setattr(file_watch, "MAX_PAGES", 2)
    assert await read(stores, Entries(9), 1) == [6, 7, 8, 9]
    assert await read(stores, Entries(10, files=6000), 9) == [6, 7, 8, 9, 10]
    told = [event.data for event in stores.timeline.read(kinds=["routine.changes_unread"])]
    assert told == [{"after": 1, "before": 6}, {"entry": 10, "read": 5000, "changes": 6000}]


def is_own(stores: StoreBench, who: Author, why: str = "", key: str | None = None) -> bool:
    """Whether the routine r takes a quiet entry for its own."""
    record = EntryRecord(1, 0.0, "quiet", who, why, 1, 0, 0, None, None, False, 0, ())
    routine = stores.routines.find("r")
    assert routine is not None
    return make_watch(stores, key=key)._is_own(routine, EntryChanges(record, (), 1))


@pytest.mark.parametrize(
    ("by", "why", "own"),
    [
        ("owner", "routine r", True),
        ("owner", "routine r: workflow sort, step 2", True),
        ("owner", "routine r2", False),
        ("owner", "workflow sort, step 2", False),
        ("ssh", "routine r", False),
    ],
)
def test_what_history_records_in_the_middle_of_a_run_is_its_own(
    stores: StoreBench, by: Literal["owner", "ssh"], why: str, own: bool
) -> None:
    stores.add(files=["*"])
    assert is_own(stores, Author(by=by), why) == own


def test_what_an_agent_of_its_workflow_changes_is_its_own(stores: StoreBench) -> None:
    for name in ("r", "other"):
        stores.add(name, files=["*"])
    (run, other) = [stores.runs.trigger(name, "manual:1", {}) for name in ("r", "other")]
    assert run is not None
    assert other is not None
    who = Author(by="agent", session="s", turn="1")
    assert is_own(stores, who, key=f"workflow:{run.id}-1:5")
    for key in (f"workflow:{other.id}-1:5", "workflow:abc:5", f"routine:{run.id}:1", "mine", None):
        assert not is_own(stores, who, key=key)
    assert not is_own(stores, Author(by="agent", session="s"), key=f"workflow:{run.id}-1:5")


class Slow(Entries):
    """Tells of one change, and has no entry for a long time."""

    def __init__(self) -> None:
        super().__init__(0)
        self.asked = 0

    async def call(self, call: Any, *, timeout: float | None = None) -> Any:
        self.asked += 1
        return await super().call(call)

    async def stream(self, _call: Any) -> AsyncIterator[None]:
        yield None
        await asyncio.Event().wait()


async def test_a_change_that_history_records_much_later_begins_its_run(
    stores: StoreBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`history.quiet` may be hours."""
    monkeypatch.setattr(file_watch, "LOOK_FOR", 0.0)
    monkeypatch.setattr(file_watch, "LOOK_SLOWLY", 0.01)
    stores.add(files=["inbox/*"])
    entries = Slow()
    stores.routines.save_position(POSITION, "0")
    watching = asyncio.ensure_future(make_watch(stores, entries).run())
    await until(lambda: entries.asked > 3)
    entries.entries = Entries(1).entries
    await until(lambda: stores.runs.list_runs("r"))
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
