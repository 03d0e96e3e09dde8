"""What waits for a relay is bounded, keeps its order, and is there after a restart."""

import time
from pathlib import Path

import pytest

from freehold.mesh.nostr.event import sign_event
from freehold.mesh.nostr.keys import make_key
from freehold.mesh.outbox import KEPT_SECONDS, RelayOutbox
from freehold.mesh.schema import ROOM, STEPS
from freehold.timeline import Timeline

HERE, THERE = "wss://here.example.com", "wss://there.example.com"


def test_the_outbox_keeps_the_newest_for_each_relay_and_survives_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehold.mesh.outbox.MAX_WAITING", 10)
    key = make_key()
    events = [sign_event(key, 1, str(number)) for number in range(25)]
    with Timeline(tmp_path / "timeline.db") as timeline:
        timeline.ensure_schema(ROOM, *STEPS)
        outbox = RelayOutbox(timeline)
        outbox.add(THERE, events[0])
        for event in (*events, events[-1]):
            outbox.add(HERE, event)
        assert outbox.count() == {HERE: 10, THERE: 1}
    with Timeline(tmp_path / "timeline.db") as timeline:
        outbox = RelayOutbox(timeline)
        assert [one.content for one in outbox.list(HERE)] == [str(number) for number in range(15, 25)]
        assert [one.content for one in outbox.list(HERE, 2, without=(events[15].id, events[17].id))] == ["16", "18"]
        assert outbox.find(HERE, events[20].id) == events[20]
        outbox.remove(HERE, events[20].id)
        outbox.remove(HERE, events[20].id)
        assert outbox.find(HERE, events[20].id) is None
        assert outbox.list_ids(HERE) == {one.id for one in outbox.list(HERE)}
        assert len(outbox.list(HERE)) == 9
        # What nobody took for a week is not sent any more.
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + KEPT_SECONDS + 60)
        outbox.add(HERE, sign_event(key, 1, "new"))
        assert [one.content for one in outbox.list(HERE)] == ["new"]
