"""The keeper's pen writes in order, waits for the disk, and is held up by no single event; its tasks survive their bugs."""

import asyncio
import time
from pathlib import Path

from freehold.keeper.recorder import Recorder
from freehold.keeper.tending import tended
from freehold.timeline import Timeline


def kinds(path: Path) -> list[str]:
    with Timeline(path, readonly=True) as timeline:
        assert timeline.verify() == []
        return [event.kind for event in timeline.read()]


def test_events_are_written_in_order(tmp_path: Path) -> None:
    record = Recorder(tmp_path / "timeline.db", time.time)
    for number in range(5):
        record(f"test.event_{number}", {})
    assert record.write_now()
    record.close()
    assert kinds(tmp_path / "timeline.db") == [f"test.event_{number}" for number in range(5)]


def test_an_event_that_no_disk_takes_is_counted_and_the_next_ones_are_written(tmp_path: Path) -> None:
    record = Recorder(tmp_path / "timeline.db", time.time)
    record("test.before", {})
    record("test.huge", {"words": "x" * 100_000})
    record("test.odd", {"path": Path("/not/json")})  # type: ignore[dict-item]
    record("test.after", {})
    assert record.write_now()
    record.close()
    found = kinds(tmp_path / "timeline.db")
    assert [kind for kind in found if kind.startswith("test.")] == ["test.before", "test.after"]
    assert found.count("timeline.events_lost") == 2


def test_while_the_disk_refuses_events_wait_bounded_and_then_come_with_the_count_of_the_lost(tmp_path: Path) -> None:
    folder = tmp_path / "missing"
    record = Recorder(folder / "timeline.db", time.time)
    for number in range(2100):
        record("test.event", {"number": number})
    assert not record.write_now()
    assert record.trouble
    folder.mkdir()
    assert record.write_now()
    assert record.trouble is None
    record.close()
    with Timeline(folder / "timeline.db", readonly=True) as timeline:
        first, *events = timeline.read(limit=5000)
    assert (first.kind, first.data) == ("timeline.events_lost", {"count": 100})
    assert [event.data["number"] for event in events] == list(range(100, 2100))


async def test_flushed_returns_when_everything_is_on_disk(tmp_path: Path) -> None:
    record = Recorder(tmp_path / "timeline.db", time.time)
    await record.flushed()
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(record.write())
        await asyncio.sleep(0)
        record("test.event", {})
        async with asyncio.timeout(10):
            await record.flushed()
        assert kinds(tmp_path / "timeline.db") == ["test.event"]
        writing.cancel()
    record.close()


async def test_a_task_with_a_bug_begins_again_until_it_is_done() -> None:
    tries = 0

    async def work() -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise ZeroDivisionError

    await tended("a test", work, pause=0)
    assert tries == 3
