"""The recorder writes events in order, also after disk errors, and skips one that cannot be stored. Tasks restart after errors."""

import asyncio
import time
from pathlib import Path

from tests.support.condition import DEADLINE

from freehold.keeper.recorder import EventRecorder
from freehold.keeper.retry import retry_until_done
from freehold.timeline import Timeline


def kinds(path: Path) -> list[str]:
    with Timeline(path, readonly=True) as timeline:
        assert timeline.verify() == []
        return [event.kind for event in timeline.read()]


def test_events_are_written_in_order(tmp_path: Path) -> None:
    record = EventRecorder(tmp_path / "timeline.db", time.time)
    for number in range(5):
        record(f"test.event_{number}", {})
    assert record.write_now()
    record.close()
    assert kinds(tmp_path / "timeline.db") == [f"test.event_{number}" for number in range(5)]


def test_an_event_that_cannot_be_stored_is_counted_and_the_next_ones_are_written(tmp_path: Path) -> None:
    record = EventRecorder(tmp_path / "timeline.db", time.time)
    record("test.before", {})
    record("test.huge", {"words": "x" * 100_000})
    record("test.odd", {"path": Path("/not/json")})  # type: ignore[dict-item]
    record("test.after", {})
    assert record.write_now()
    record.close()
    found = kinds(tmp_path / "timeline.db")
    assert [kind for kind in found if kind.startswith("test.")] == ["test.before", "test.after"]
    assert found.count("timeline.events_lost") == 2


def test_while_the_disk_is_full_events_wait_in_limited_number_and_lost_ones_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "missing"
    record = EventRecorder(folder / "timeline.db", time.time)
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


async def test_wait_flushed_returns_when_everything_is_on_disk(tmp_path: Path) -> None:
    record = EventRecorder(tmp_path / "timeline.db", time.time)
    await record.wait_flushed()
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(record.write_until_cancelled())
        await asyncio.sleep(0)
        record("test.event", {})
        async with asyncio.timeout(DEADLINE):
            await record.wait_flushed()
        assert kinds(tmp_path / "timeline.db") == ["test.event"]
        writing.cancel()
    record.close()


async def test_a_task_that_fails_starts_again_until_it_succeeds() -> None:
    tries = 0

    async def work() -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise ZeroDivisionError

    await retry_until_done("a test", work, pause=0)
    assert tries == 3
