"""Events are read by range, kind and time, and followed live across processes."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from freehold.errors import FreeholdError
from freehold.timeline import Timeline, wakeup

START = datetime(2030, 1, 1, tzinfo=UTC)
KINDS = ("keeper.started", "egress.asked", "egress.rule.added", "egressive.made", "keeper.stopped")


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    """Ten events, an hour apart."""
    hours = count()
    with Timeline(tmp_path / "timeline.db", clock=lambda: START + timedelta(hours=next(hours))) as opened:
        for kind in KINDS * 2:
            opened.append(kind)
        yield opened


def test_a_range_is_after_and_until(timeline: Timeline) -> None:
    assert [event.seq for event in timeline.read(after=3, until=6)] == [4, 5, 6]
    assert [event.seq for event in timeline.read(after=8)] == [9, 10]
    assert [event.seq for event in timeline.read(limit=2)] == [1, 2]
    assert timeline.read(after=10) == []


def test_kinds_are_exact_or_a_pattern_of_a_room(timeline: Timeline) -> None:
    assert [event.seq for event in timeline.read(kinds=["egress.*"])] == [2, 3, 7, 8]
    assert [event.seq for event in timeline.read(kinds=["egress.rule.*", "keeper.stopped"])] == [3, 5, 8, 10]
    assert len(timeline.read(kinds=["*"])) == 10
    assert timeline.read(kinds=["egress.%"[:-1] + "*"], after=8) == []
    with pytest.raises(FreeholdError, match="not a valid kind"):
        timeline.read(kinds=["egr*"])


def test_since_is_a_moment_in_any_zone(timeline: Timeline) -> None:
    from datetime import timezone

    moment = (START + timedelta(hours=8)).astimezone(timezone(timedelta(hours=5)))
    assert [event.seq for event in timeline.read(since=moment)] == [9, 10]


def test_the_tail_is_the_last_ones_oldest_first(timeline: Timeline) -> None:
    assert [event.seq for event in timeline.tail(2, kinds=["keeper.*"])] == [6, 10]
    last = timeline.last()
    assert last is not None
    assert last.seq == 10


def test_a_kind_is_found_through_the_index(timeline: Timeline) -> None:
    plan = timeline.query("EXPLAIN QUERY PLAN SELECT seq FROM event WHERE kind >= 'egress.' AND kind < 'egress/'")
    assert "event_kind" in str(plan)


WRITE = """
import sys
from freehold.timeline import Timeline, wakeup
with Timeline(sys.argv[1]) as timeline:
    for line in sys.stdin:
        print(timeline.append(line.strip()).seq, flush=True)
"""


async def test_a_follower_sees_another_process_and_resumes_without_gap_or_repeat(timeline: Timeline) -> None:
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITE, str(timeline.path), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert writer.stdin is not None
    seen: list[int] = []
    async with asyncio.timeout(30):
        async with aclosing(timeline.follow(after=8)) as events:
            async for event in events:
                seen.append(event.seq)
                if event.seq == 10:
                    writer.stdin.write(b"ssh.opened\nssh.closed\n")
                if event.seq == 12:
                    break
        writer.stdin.write(b"ssh.opened\n")
        async with aclosing(timeline.follow(after=seen[-1])) as events:
            async for event in events:
                seen.append(event.seq)
                break
        writer.stdin.close()
        assert await writer.wait() == 0
    assert seen == [9, 10, 11, 12, 13]


async def test_a_follower_of_one_kind_sees_only_that_and_starts_now_by_default(timeline: Timeline) -> None:
    async with asyncio.timeout(30), aclosing(timeline.follow(kinds=["ssh.*"])) as events:
        waiting = asyncio.ensure_future(anext(events))
        while not waiting.done():  # whenever "now" was, one of these comes after it
            await asyncio.to_thread(timeline.append, "keeper.started")
            await asyncio.to_thread(timeline.append, "ssh.opened")
        event = await waiting
    assert event.kind == "ssh.opened"
    assert event.seq > 10


async def test_many_events_at_once_all_reach_the_follower(timeline: Timeline) -> None:
    def write() -> None:
        with timeline.transaction() as tx:
            for _ in range(1500):
                tx.append("keeper.counted")

    async with asyncio.timeout(30), aclosing(timeline.follow(after=10)) as events:
        await asyncio.to_thread(write)
        seen = [(await anext(events)).seq for _ in range(1500)]
    assert seen == list(range(11, 1511))


async def test_a_follower_sees_events_without_inotify(timeline: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeup, "_watch", lambda log: None)
    async with asyncio.timeout(30), aclosing(timeline.follow(after=9)) as events:
        assert (await anext(events)).seq == 10
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.to_thread(timeline.append, "ssh.opened")
        assert (await waiting).seq == 11


async def test_a_follower_that_is_closed_leaves_no_descriptor_open(timeline: Timeline) -> None:
    async def follow_one() -> None:
        async with aclosing(timeline.follow(after=9)) as events:
            await anext(events)

    await follow_one()
    before = sorted(Path("/proc/self/fd").iterdir())
    await follow_one()
    assert sorted(Path("/proc/self/fd").iterdir()) == before
