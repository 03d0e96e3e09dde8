"""The store of sessions: images of prompts, prompts that are never sent, and databases of 0.1.0."""

import base64
from pathlib import Path

import pytest

from freehold.agents.sessions.approval_store import ApprovalStore, PermissionAnswer
from freehold.agents.sessions.event_log import append_events
from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.agents.sessions.store import SessionStore
from freehold.errors import FreeholdError
from freehold.timeline import Timeline

PIXEL = b"\x89PNG\r\n\x1a\nnot much of one"


def prompt(text: str) -> dict[str, object]:
    return {
        "text": text,
        "files": [],
        "images": [{"mime": "image/png", "data": base64.b64encode(PIXEL).decode()}],
    }


def begin_turn(store: SessionStore, text: str = "look") -> str:
    session = store.create("actor", None, None, who="owner").id
    turn, _ = store.turns.add(session, "key", prompt(text), first=False, waits=False, who="owner")
    (started,) = store.turns.begin(session, turn, None, who="owner")
    assert started.data["prompt"]["images"] == [{"mime": "image/png", "size": 32}]
    return session


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    store = SessionStore(Timeline(tmp_path / "timeline.db"))
    store.prepare()
    return store


def test_an_image_is_stored_as_long_as_its_turn(store: SessionStore) -> None:
    session = begin_turn(store)
    assert store.turns.get_image(session, 1, 0) == ("image/png", PIXEL)
    copy = store.create("actor", None, None, who="owner").id
    store.copy_events(session, copy)
    store.rewind(session, 1, who="owner")
    with pytest.raises(FreeholdError, match="no image"):
        store.turns.get_image(session, 1, 0)
    assert store.turns.get_image(copy, 1, 0) == ("image/png", PIXEL)
    store.delete(copy, who="owner")
    with pytest.raises(FreeholdError, match="no image"):
        store.turns.get_image(copy, 1, 0)


def test_a_dropped_prompt_has_one_event(store: SessionStore) -> None:
    session = begin_turn(store)
    store.turns.add(session, "later", prompt("and then"), first=False, waits=True, who="owner")
    (dropped,) = store.turns.drop_queued(session)
    assert (dropped.kind, dropped.turn, dropped.data) == ("dropped", 2, {"key": "later"})
    assert store.turns.drop_queued(session) == []


def test_a_cancelled_prompt_is_never_sent(store: SessionStore) -> None:
    """The owner cancelled it while history recorded the files, after it was taken from the queue."""
    session = store.create("actor", None, None, who="owner").id
    turn, _ = store.turns.add(session, "key", prompt("oops"), first=False, waits=False, who="owner")
    assert store.get(session).status == "working"
    store.turns.drop_queued(session)
    assert store.get(session).status == "idle"
    with pytest.raises(FreeholdError, match="was cancelled"):
        store.turns.begin(session, turn, None, who="owner")
    assert store.get(session).status == "idle"
    assert [event.kind for event in store.events(session)] == ["dropped"]


def test_an_answer_of_0_1_0_is_read_as_this_conversation(store: SessionStore) -> None:
    """Freehold 0.1.0 stored `session`; a new answer is stored as `conversation`."""
    approvals = ApprovalStore(store.timeline)
    session = begin_turn(store)
    request = PermissionRequest("execute", "make", {"command": "make"}, ("make",), "digest")
    old, _ = approvals.add(session, 1, request)
    new, _ = approvals.add(session, 1, request)
    stored = {
        "id": old.id,
        "options": ["once", "session", "always", "reject"],
        "state": "answered",
        "answer": "session",
    }
    with store.timeline.transaction() as tx:
        tx.execute("UPDATE agents_approval SET state = 'granted', answer = 'session', live = 0 WHERE id = ?", (old.id,))
        append_events(tx, session, 1, [("approval", stored)], who="owner")
    assert approvals.get(old.id).answer == "conversation"
    assert approvals.get(old.id).as_json()["options"] == ["once", "conversation", "always", "reject"]
    event = store.events(session)[-1]
    assert event.data["answer"] == "conversation"
    assert event.data["options"] == ["once", "conversation", "always", "reject"]
    assert approvals.use_grant(session, "digest") == PermissionAnswer("conversation")
    approvals.answer(new.id, "conversation", None, "owner")
    rows = store.timeline.query("SELECT answer FROM agents_approval WHERE id = ?", (new.id,))
    assert rows == [("conversation",)]
