"""The log of events: numbers without gaps, files that rotate, and nothing broken by a crash."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from freehold.slots.events import log as event_log
from freehold.slots.events.cloud_event import CloudEvent, matches, read_event
from freehold.slots.events.log import EventLog
from freehold.slots.events.pump import EventPump
from freehold.slots.events.schema import STEPS
from freehold.strict_json import WrongShape
from freehold.timeline import Timeline

LARGE = 1024 * 1024 * 1024


def make(id: int, type: str = "com.example.told", size: int = 10) -> CloudEvent:
    return CloudEvent(0, str(id), "urn:test", type, "2026-01-01T00:00:00.000Z", "owner", {"x": "y" * size})


def test_events_are_numbered_and_read_by_cursor(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events", LARGE)
    assert log.ends().last == 0
    assert log.read(0, 10).events == ()
    assert log.append([make(n) for n in range(5)]) == 5
    assert [event.id for event in log.read(0, 3).events] == ["0", "1", "2"]
    assert [event.sequence for event in log.read(3, 10).events] == [4, 5]
    assert log.read(5, 10).reached == 5
    assert log.read(99, 10).reached == 99


@pytest.mark.parametrize("count", [1, 2, 3, 10, 257])
def test_every_event_is_found_at_once_wherever_it_stands(tmp_path: Path, count: int) -> None:
    """Lines of very different lengths: the search for a number must not depend on where the middle falls."""
    log = EventLog(tmp_path / "events", LARGE)
    log.append([make(n, size=(n * 7919) % 3000) for n in range(count)])
    for after in range(count):
        found = log.read(after, 1).events
        assert [event.sequence for event in found] == [after + 1]


def test_old_files_are_removed_and_a_reader_is_told_how_many_events_it_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "SEGMENT_BYTES", 2000)
    monkeypatch.setattr(event_log, "MIN_BYTES", 4000)
    log = EventLog(tmp_path / "events", 10_000)
    for n in range(100):
        log.append([make(n)])
    ends = log.ends()
    assert ends.last == 100
    assert 1 < ends.first < 100
    assert ends.size <= 10_000 + 2000
    part = log.read(3, 1000)
    assert part.missed == ends.first - 4
    assert [event.sequence for event in part.events] == list(range(ends.first, 101))
    assert log.read(100, 10).missed == 0
    assert log.size_after(99) < log.size_after(ends.first)


def test_a_line_that_a_crash_cut_off_is_never_read_and_its_number_is_given_again(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events", LARGE)
    log.append([make(1), make(2)])
    (file,) = (tmp_path / "events").glob("*.jsonl")
    whole = file.read_bytes()
    for cut in (1, 2, 50, 150, len(whole.splitlines()[1])):
        file.write_bytes(whole[:-cut])
        torn = EventLog(tmp_path / "events", LARGE)
        assert [event.id for event in torn.read(0, 10).events] == ["1"]
        assert torn.ends().last == 1
        assert torn.append([make(3)]) == 2
        assert [event.id for event in torn.read(0, 10).events] == ["1", "3"]


WRITER = """\
import sys
from pathlib import Path
from freehold.slots.events.cloud_event import CloudEvent
from freehold.slots.events.log import EventLog
log = EventLog(Path(sys.argv[1]), 2**30)
for n in range(40):
    log.append([CloudEvent(0, str(n), "urn:test", f"com.example.{sys.argv[2]}", "t", "owner", {})])
"""


def test_several_processes_write_one_log_without_a_gap(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, tmp_path / "events", f"w{n}"]) for n in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    events = EventLog(tmp_path / "events", LARGE).read(0, 1000).events
    assert [event.sequence for event in events] == list(range(1, 121))
    for n in range(3):
        assert [event.id for event in events if event.type == f"com.example.w{n}"] == [str(i) for i in range(40)]


def make_pump(folder: Path, timeline: Timeline, *kinds: str) -> tuple[EventPump, EventLog]:
    log = EventLog(folder / "events", LARGE)
    pump = EventPump(folder / "events", log, timeline, kinds or ("*",))
    pump.prepare()
    return pump, log


def test_the_timeline_becomes_events_by_filter_and_in_order(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        timeline.ensure_schema("events", *STEPS)
        timeline.append("test.before")
        pump, log = make_pump(tmp_path, timeline, "test.*", "history.undone")
        for kind in ("test.one", "other.two", "history.undone", "history.redone", "test.three", "events.dropped"):
            timeline.append(kind, {"session": "s1"}, who="owner")
        assert pump.run()
        assert not pump.run()
        events = log.read(0, 10).events
        assert [event.type for event in events] == [
            "org.freehold.test.one",
            "org.freehold.history.undone",
            "org.freehold.test.three",
        ]
        assert (events[0].subject, events[0].actor, events[0].timeline) == ("sessions/s1", "owner", 2)
        assert {event.source for event in events} == {events[0].source}


@pytest.mark.parametrize("loss", ["old position", "no position", "torn log"])
def test_after_a_crash_each_event_of_the_timeline_is_in_the_log_once(tmp_path: Path, loss: str) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        timeline.ensure_schema("events", *STEPS)
        pump, log = make_pump(tmp_path, timeline)
        timeline.append("test.one")
        pump.run()
        position = tmp_path / "events" / "position.json"
        old = position.read_text()
        for kind in ("test.two", "test.three"):
            timeline.append(kind)
        pump.run()
        source = log.read(0, 1).events[0].source
        if loss == "old position":
            position.write_text(old)
        elif loss == "no position":
            position.write_text("")
        else:
            # The position is written after the log is on the disk, so that it is never ahead of it.
            position.write_text(old)
            (file,) = (tmp_path / "events").glob("*.jsonl")
            file.write_bytes(file.read_bytes()[:-20])
        timeline.append("test.four")
        again, log = make_pump(tmp_path, timeline)
        again.run()
        events = log.read(0, 100).events
        assert [event.type.rpartition(".")[2] for event in events] == ["one", "two", "three", "four"]
        assert [event.sequence for event in events] == [1, 2, 3, 4]
        assert {event.source for event in events} == {source}


def test_an_event_is_read_as_it_was_written_and_nothing_else_is_read() -> None:
    event = CloudEvent(7, "1", "urn:x", "a.b", "2026-01-01T00:00:00Z", "owner", {"k": [1]}, "s", 3, True)
    assert read_event(json.loads(event.as_line(7))) == event
    for wrong in ({"specversion": "0.3"}, {"sequence": "x"}, {"extra": 1}, {"data": "text"}):
        with pytest.raises(WrongShape):
            read_event({**event.as_json(), **wrong})


def test_types_match_by_name_or_by_their_beginning() -> None:
    assert matches("*", "a.b")
    assert matches("a.*", "a.b.c")
    assert matches("a.b", "a.b")
    assert not matches("a.*", "ab.c")
    assert not matches("a", "a.b")
