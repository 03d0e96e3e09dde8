"""What is sent again keeps its key, so that it is shown once, and leaves out what is of no use any more."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from freehold.channels.delivery import merge
from freehold.channels.outbox import MAX_AGE, MAX_PER_SESSION, REPLY, DraftMessage, Outbox, StoredMessage
from freehold.channels.store import ChannelStore
from freehold.timeline import Timeline


class Bench:
    """An outbox whose clock is set, and the subjects of what the owner has read in the page."""

    def __init__(self, timeline: Timeline) -> None:
        self.now = 1_000_000.0
        self.store = ChannelStore(timeline)
        self.store.prepare()
        self.store.add("phone", "telegram", {}, who="test")
        self.outbox = Outbox(timeline, lambda: self.now)
        self.read = set[str]()

    def add(self, *subjects: str) -> None:
        for subject in subjects:
            self.outbox.add("phone", DraftMessage(subject, "finished", subject, "", "http://x/", self.now))

    def take(self) -> list[StoredMessage]:
        return self.outbox.take("phone", lambda one: one.subject in self.read)[0]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Timeline(tmp_path / "timeline.db") as timeline:
        yield Bench(timeline)


def test_what_was_read_meanwhile_is_left_out_and_the_key_stays(bench: Bench) -> None:
    bench.add("a", "b", "c")
    first = bench.take()
    assert [one.subject for one in first] == ["a", "b", "c"]
    bench.read = {"a"}
    again = bench.take()
    assert [one.subject for one in again] == ["b", "c"]
    assert merge(again, 4000).key == merge(first, 4000).key
    bench.read = {"a", "b"}
    last = bench.take()
    assert [one.subject for one in last] == ["c"]
    assert merge(last, 4000).key == merge(first, 4000).key
    bench.read = {"a", "b", "c"}
    assert bench.take() == []
    assert bench.outbox.count_waiting("phone") == 0


def test_what_is_new_is_not_sent_with_what_was_begun(bench: Bench) -> None:
    bench.add("a", "b")
    first = bench.take()
    bench.add("c")
    assert [one.subject for one in bench.take()] == ["a", "b"]
    bench.read = {"a", "b"}
    assert bench.take() == []
    following = bench.take()
    assert [one.subject for one in following] == ["c"]
    assert merge(following, 4000).key != merge(first, 4000).key


def test_what_could_not_be_sent_for_a_day_is_not_sent_any_more(bench: Bench) -> None:
    bench.add("a")
    assert bench.take()
    bench.now += MAX_AGE + 1
    assert bench.take() == []


def test_one_session_does_not_push_out_what_others_tell(bench: Bench) -> None:
    """An agent that asks again and again in the night, and withdraws it."""
    bench.add("Backups fail")
    for number in range(MAX_PER_SESSION * 12):
        draft = DraftMessage(f"asked-{number}", "needs_you", "An agent needs you", "", "http://x/", bench.now, "noisy")
        bench.outbox.add("phone", draft)
    for number in range(60):
        bench.outbox.add("phone", replace(draft, key=f"answer-{number}", tell=REPLY))
    assert bench.outbox.count_waiting("phone") == 1 + 60 + MAX_PER_SESSION
    assert [one.subject for one in bench.take()] == ["Backups fail"]
    row = bench.store.get("phone")
    assert row.dropped == MAX_PER_SESSION * 11
