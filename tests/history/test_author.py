"""Who asked for an undo is stored with its entry, shown in words, and named in the timeline event."""

import json
from pathlib import Path

import pytest
from tests.history.tree import write

from freehold.history import Author, History
from freehold.history.author import describe_author, name_actor
from freehold.history.calls import RedoChanges, RequestAuthor, UndoChanges
from freehold.history.restore_event import make_restore_event
from freehold.history.service import HistoryService


@pytest.mark.parametrize(
    ("who", "words"),
    [
        ({"by": "owner", "via": "browser", "sign_in": "3f2a"}, "owner (browser, sign-in 3f2a)"),
        ({"by": "owner", "via": "token", "token": "laptop"}, "owner (token laptop)"),
        ({"by": "agent", "agent": "claude", "session": "s1", "via": "session"}, "claude (session s1)"),
        ({"by": "agent", "session": "s1", "via": "session"}, "agent (session s1)"),
        ({"by": "owner", "via": "ssh"}, "owner (SSH)"),
        ({"by": "owner", "via": "recovery_page", "sign_in": "3f2a"}, "owner (recovery page, sign-in 3f2a)"),
        ({"by": "owner", "via": "command_line"}, "owner (command line)"),
        # As Freehold 0.1.0 stored them.
        ({"by": "owner"}, "owner"),
        ({"by": "owner", "agent": "token:laptop"}, "owner (token laptop)"),
        ({"by": "owner", "session": "s1", "turn": "4"}, "owner"),
        ({"by": "agent", "agent": "claude", "session": "s1", "turn": "4"}, "claude turn 4"),
        ({"by": "terminal", "terminal": "t1"}, "terminal t1"),
        ({"by": "ssh", "session": "v1"}, "ssh"),
        ({"by": "unknown"}, "unknown"),
    ],
)
def test_an_author_is_described_in_one_phrase(who: dict[str, str], words: str) -> None:
    assert describe_author(who) == words


@pytest.mark.parametrize(
    ("author", "actor"),
    [
        (Author("owner", via="browser", sign_in="3f2a"), "owner"),
        (Author("owner", via="token", token="laptop"), "token:laptop"),
        (Author("agent", agent="claude", session="s1", via="session"), "session:s1"),
        (Author("owner", via="ssh"), "owner"),
        (Author("owner", via="recovery_page", sign_in="3f2a"), "owner"),
        (Author("owner", via="command_line"), "owner"),
    ],
)
def test_an_author_is_the_who_of_the_timeline_event(author: Author, actor: str) -> None:
    assert name_actor(author) == actor


def test_the_author_is_stored_with_the_entry_and_sent_with_the_log(history: History, workspace: Path) -> None:
    write(workspace / "file", "1")
    history.snapshot()
    who = {"by": "owner", "via": "token", "token": "laptop"}
    service = HistoryService(history)
    entry = service.handle("history.undo", {"who": who})["entry"]["id"]
    stored = history._db.execute("SELECT who FROM entry WHERE id = ?", (entry,)).fetchone()[0]
    assert json.loads(stored) == who
    assert service.handle("history.log", {"limit": 1})["entries"][0]["who"] == who


def test_an_entry_that_freehold_0_1_0_stored_is_read(history: History, workspace: Path) -> None:
    write(workspace / "file", "1")
    entry = history.snapshot().entry
    old = '{"by": "owner", "agent": "token:laptop", "beside": "agent:s1:4"}'
    history._db.execute("UPDATE entry SET who = ? WHERE id = ?", (old, entry))
    assert history.entry(entry).who == Author("owner", agent="token:laptop", beside="agent:s1:4")


def test_the_event_of_an_undo_says_who_asked(history: History, workspace: Path) -> None:
    write(workspace / "file", "1")
    history.snapshot()
    service = HistoryService(history)
    undo = UndoChanges(who=RequestAuthor(by="owner", via="browser", sign_in="3f2a"))
    event = make_restore_event(undo, service.answer(undo))
    assert (event.kind, event.who) == ("history.undone", "owner")
    assert event.data["asked_by"] == {"by": "owner", "via": "browser", "sign_in": "3f2a"}
    assert event.data["paths"] == 1
    redo = RedoChanges(who=RequestAuthor(by="agent", session="s1", via="session"))
    event = make_restore_event(redo, service.answer(redo))
    assert (event.kind, event.who) == ("history.redone", "session:s1")
