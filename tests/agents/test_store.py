"""The store of sessions: images of prompts, prompts that are never sent, and databases of 0.1.0."""

import base64
import json
import os
import signal
from pathlib import Path

import pytest

from freehold.agents.sessions.approval_store import AnswerDelivery, ApprovalStore, PermissionAnswer
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


def test_a_session_without_prompt_or_name_is_left_out(store: SessionStore) -> None:
    unused = store.create("actor", None, None, who="owner").id
    named = store.create("actor", "Garden", None, who="owner").id
    store.append(unused, None, [("options", {"modes": []})])  # an option was set, and nothing was said
    assert [row.id for row in store.search(unused=False)] == [named]
    assert store.search(query="New session", unused=False) == []
    assert {row.id for row in store.search()} == {unused, named}
    store.turns.add(unused, "key", prompt("hello"), first=False, waits=True, who="owner")
    assert {row.id for row in store.search(unused=False)} == {unused, named}


def test_a_page_is_full_however_many_unused_sessions_lie_between(store: SessionStore) -> None:
    named = []
    for number in range(6):
        named.append(store.create("actor", f"Garden {number}", None, who="owner").id)
        store.create("actor", None, None, who="owner")
    first = store.search(limit=4, unused=False)
    rest = store.search(cursor=f"{first[-1].updated} {first[-1].id}", limit=4, unused=False)
    assert [row.id for row in [*first, *rest]] == named[::-1]


def test_the_tool_calls_of_a_turn_are_known_from_their_begin(store: SessionStore) -> None:
    session = begin_turn(store)
    read = {"id": "1", "title": "Read a", "kind": "read", "status": "in_progress"}
    store.append(session, 1, [("tool", read), ("message", {"text": "x"})])
    assert store.tool_calls(session, 1) == [("read", "Read a")]
    # However much is said after it, and once only.
    store.append(session, 1, [("tool", {**read, "status": "completed"}), *[("message", {"text": "x"})] * 600])
    assert store.tool_calls(session, 1) == [("read", "Read a")]
    assert store.tool_calls(session, 2) == []


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


def test_a_request_of_0_1_0_is_shown_in_parts(store: SessionStore) -> None:
    """Freehold 0.1.0 stored the command, the changes and the paths in `details` only."""
    approvals = ApprovalStore(store.timeline)
    session = begin_turn(store)
    found, _ = approvals.add(session, 1, PermissionRequest("edit", "Edit", {}, ("/workspace/a",), "digest"))
    diff = {"path": "/workspace/a", "old": None, "new": "x"}
    details = {"command": "make", "folder": "/workspace", "diffs": [diff], "input": "words", "paths": ["/workspace/b"]}
    data = {"tool": "t", "kind": "edit", "title": "Edit", "details": details, "subjects": ["/workspace/a"]}
    event = {"id": found.id, "state": "pending", "options": ["once", "reject"], **data}
    with store.timeline.transaction() as tx:
        tx.execute("UPDATE agents_approval SET data = ? WHERE id = ?", (json.dumps(data), found.id))
        append_events(tx, session, 1, [("approval", event)], who="agent")
    for shown in (approvals.get(found.id).as_json(), store.events(session)[-1].data):
        assert [part["kind"] for part in shown["parts"]] == ["command", "folder", "diff", "path", "text"]
        assert (shown["complete"], shown["hidden_bytes"], shown["names_nothing"]) == (True, 0, False)
        assert shown["details"] == {"command": "make", "folder": "/workspace"}
    assert approvals.get(found.id).as_json()["digest"] == "digest"


def test_the_mode_of_an_agent_is_stored_and_recorded_when_it_changes(store: SessionStore) -> None:
    first, second = (store.create("actor", None, None, who="owner").id for _ in range(2))
    assert store.get(first).asks is None
    assert store.find_last_mode("actor") is None
    assert store.save_mode(first, "ask", asks=True)
    assert not store.save_mode(first, "ask", asks=True)
    assert store.save_mode(second, None, asks=False)
    assert store.get(first).as_json()["asks"] is True
    store.update(first, title="later", archived=None, who="owner")
    assert store.find_last_mode("actor") == ("ask", True)
    told = [event.data["mode"] for event in store.timeline.tail(50) if event.kind == "agent.mode"]
    assert told == ["ask", None]


def answer_and_die(path: Path, approval: str, statement: int) -> bool:
    """Answers in another process that is killed before its n-th statement. Whether it was."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    try:
        timeline = Timeline(path)
        left = statement

        def count(_sql: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        assert timeline._writer is not None
        timeline._writer.set_trace_callback(count)
        delivery = AnswerDelivery(
            f"approval:{approval}", lambda row: f"The user said {row.answer}", waits=False, status=None
        )
        ApprovalStore(timeline).answer(approval, "once", None, "owner", None, delivery)
    finally:
        os._exit(0)


def test_an_answer_and_the_prompt_that_delivers_it_are_both_stored_or_neither(tmp_path: Path) -> None:
    """The process is killed before each statement of it. Afterwards the owner can answer, or the agent is told."""
    path = tmp_path / "timeline.db"
    with Timeline(path) as timeline:
        store = SessionStore(timeline)
        store.prepare()
        session = begin_turn(store)
        request = PermissionRequest("execute", "make", {"command": "make"}, ("make",), "digest")
        approvals = [ApprovalStore(timeline).add(session, 1, request)[0].id for _ in range(40)]
        ApprovalStore(timeline).mark_all_orphaned()
    statements = 0
    for approval in approvals:
        statements += 1
        killed = answer_and_die(path, approval, statements)
        with Timeline(path) as timeline:
            state = ApprovalStore(timeline).get(approval).state
            queued = timeline.query("SELECT prompt FROM agents_turn WHERE key = ?", (f"approval:{approval}",))
        assert (state, len(queued)) == (("pending", 0) if killed else ("granted", 1))
        if not killed:
            assert json.loads(queued[0][0])["text"] == "The user said once"
            break
    assert 10 < statements < len(approvals)


def read_forward(store: SessionStore, session: str, limit: int) -> list[list[int]]:
    """The numbers on each page, from the first event on."""
    pages: list[list[int]] = []
    after = 0
    while True:
        page = store.read_page(session, after=after, limit=limit)
        pages.append([event.seq for event in page.events])
        if not page.is_cut and len(page.events) < limit:
            return pages
        after = page.events[-1].seq


def read_back(store: SessionStore, session: str, limit: int) -> list[list[int]]:
    pages: list[list[int]] = []
    before: int | None = None
    while not pages or pages[-1]:
        page = store.read_page(session, before=before, limit=limit, last=True)
        pages.append([event.seq for event in page.events])
        before = page.events[0].seq if page.events else None
    return pages


def test_a_page_of_long_events_has_fewer_of_them_and_none_is_lost(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand events of an agent could be gigabytes, in one answer."""
    monkeypatch.setattr("freehold.agents.sessions.store.MAX_PAGE", 10_000)
    monkeypatch.setattr("freehold.agents.sessions.store.PAGE_ROWS", 3)
    session = store.create("actor", "Title", None, who="owner").id
    texts = ["x" * (4_000 if number % 2 else 50_000 if number == 20 else 10) for number in range(50)]
    store.append(session, 1, [("message", {"text": text, "role": "agent"}) for text in texts])
    every = list(range(1, 51))
    forward, back = read_forward(store, session, 40), read_back(store, session, 40)
    assert [seq for page in forward for seq in page] == every
    assert [seq for page in reversed(back) for seq in page] == every
    for page in (*forward, *back):
        assert len(page) < 20
    monkeypatch.undo()
    assert read_forward(store, session, 40) == [every[:40], every[40:]]
