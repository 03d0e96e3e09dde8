"""What a client needs to draw a conversation: images of prompts, and prompts that were never sent."""

import base64
from pathlib import Path

import pytest

from freehold.agents.store import Store
from freehold.errors import FreeholdError
from freehold.timeline import Timeline

PIXEL = b"\x89PNG\r\n\x1a\nnot much of one"


def prompt(text: str) -> dict[str, object]:
    return {
        "text": text,
        "files": [],
        "images": [{"mime": "image/png", "data": base64.b64encode(PIXEL).decode()}],
    }


def begun(store: Store, text: str = "look") -> str:
    session = store.open("actor", None, None, who="owner").id
    turn, _ = store.add_turn(session, "key", prompt(text), first=False, waits=False, who="owner")
    (started,) = store.begin_turn(session, turn, None, who="owner")
    assert started.data["prompt"]["images"] == [{"mime": "image/png", "size": 32}]
    return session


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(Timeline(tmp_path / "timeline.db"))
    store.prepare()
    return store


def test_an_image_is_there_for_as_long_as_its_turn(store: Store) -> None:
    session = begun(store)
    assert store.image(session, 1, 0) == ("image/png", PIXEL)
    copy = store.open("actor", None, None, who="owner").id
    store.copy_events(session, copy)
    store.forget_after(session, 1, who="owner")
    with pytest.raises(FreeholdError, match="no image"):
        store.image(session, 1, 0)
    assert store.image(copy, 1, 0) == ("image/png", PIXEL)
    store.delete(copy, who="owner")
    with pytest.raises(FreeholdError, match="no image"):
        store.image(copy, 1, 0)


def test_a_prompt_that_is_never_sent_is_told_of_once(store: Store) -> None:
    session = begun(store)
    store.add_turn(session, "later", prompt("and then"), first=False, waits=True, who="owner")
    (dropped,) = store.drop_queued(session)
    assert (dropped.kind, dropped.turn, dropped.data) == ("dropped", 2, {"key": "later"})
    assert store.drop_queued(session) == []


def test_a_prompt_that_was_called_off_is_not_sent_after_all(store: Store) -> None:
    """It was taken from the queue, the state of the files was noted, and meanwhile the owner stopped it."""
    session = store.open("actor", None, None, who="owner").id
    turn, _ = store.add_turn(session, "key", prompt("oops"), first=False, waits=False, who="owner")
    assert store.get(session).status == "working"
    store.drop_queued(session)
    assert store.get(session).status == "idle"
    with pytest.raises(FreeholdError, match="called off"):
        store.begin_turn(session, turn, None, who="owner")
    assert store.get(session).status == "idle"
    assert [event.kind for event in store.events(session)] == ["dropped"]
