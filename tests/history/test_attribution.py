"""The author of an entry: who was active, and for a turn only what was recorded for it."""

from pathlib import Path

import pytest
from tests.history.tree import write

from freehold.errors import FreeholdError
from freehold.history import Author, History
from freehold.history.attribution import MAX_ACTIVITY_SECONDS, NOTE_SECONDS, Attribution
from freehold.history.model import UNKNOWN, EntryRecord, SessionTurn
from freehold.history.service import HistoryService

ONE = Author("agent", agent="claude", session="one", turn="1")
TWO = Author("agent", agent="codex", session="two", turn="4")
OWNER = Author("owner")


def newest(history: History) -> EntryRecord:
    return history.entry(history.newest())


def test_what_is_found_during_a_turn_belongs_to_the_turn(history: History, workspace: Path) -> None:
    history.mark("before", "turn", ONE, "tidy")
    write(workspace / "first", "1")
    history.take_quiet_snapshot("")
    assert (newest(history).kind, newest(history).who) == ("quiet", ONE)
    history.mark("after", "turn", ONE, "tidy")
    write(workspace / "later", "2")
    history.take_quiet_snapshot("")
    assert newest(history).who == UNKNOWN


def test_an_entry_of_a_turn_names_others_who_were_active(history: History, workspace: Path) -> None:
    history.mark("before", "turn", ONE)
    write(workspace / "first", "1")
    history.mark("before", "turn", TWO)
    assert newest(history).who == ONE
    write(workspace / "second", "2")
    history.mark("after", "turn", TWO)
    assert (newest(history).who.session, newest(history).who.beside) == ("two", "agent:one:1")
    assert SessionTurn("one", "1").is_beside(newest(history).who)
    write(workspace / "third", "3")
    history.mark("after", "turn", ONE)
    assert newest(history).who == ONE


def test_a_turn_is_reverted_without_the_changes_of_others(history: History, workspace: Path) -> None:
    before = history.mark("before", "turn", ONE).entry
    write(workspace / "first", "1")
    history.note("before", OWNER, "saved mine")
    write(workspace / "mine", "own")
    history.note("after", OWNER, "saved mine")
    assert (newest(history).who, newest(history).why) == (OWNER, "saved mine")
    write(workspace / "second", "2")
    last = history.mark("after", "turn", ONE).entry
    assert not history.plan_revert(last, since=before, of=SessionTurn("one", "1")).shared
    assert history.revert(last, since=before, of=SessionTurn("one", "1")).unsettled == ()
    assert not (workspace / "first").exists()
    assert not (workspace / "second").exists()
    assert (workspace / "mine").read_text() == "own"


def test_an_undo_of_the_owner_during_a_turn_does_not_belong_to_the_turn(history: History, workspace: Path) -> None:
    write(workspace / "old", "1")
    history.snapshot()
    before = history.mark("before", "turn", ONE).entry
    history.undo(who=OWNER)
    history.redo(who=OWNER)
    last = history.mark("after", "turn", ONE).entry
    assert last > before
    assert history.plan_revert(last, since=before, of=SessionTurn("one", "1")).steps == ()


def test_a_file_that_others_changed_during_a_turn_is_a_conflict(history: History, workspace: Path) -> None:
    before = history.mark("before", "turn", ONE).entry
    write(workspace / "file", "agent\n")
    history.note("before", OWNER, "saved file")
    write(workspace / "file", "agent\nowner\n")
    history.note("after", OWNER, "saved file")
    write(workspace / "file", "agent\nowner\nagent\n")
    last = history.mark("after", "turn", ONE).entry
    plan = history.plan_revert(last, since=before, of=SessionTurn("one", "1"))
    assert [conflict.reason for conflict in plan.conflicts] == ["someone else changed it in between"]
    with pytest.raises(FreeholdError, match="Nothing was written"):
        history.revert(last, since=before, of=SessionTurn("one", "1"))
    history.revert(last, {"": "mine"}, OWNER, before, SessionTurn("one", "1"))
    assert (workspace / "file").read_text() == "agent\nowner\nagent\n"


def test_a_plan_tells_when_others_were_active_during_the_turn(history: History, workspace: Path) -> None:
    before = history.mark("before", "turn", ONE).entry
    history.note("during", Author("terminal", terminal="t1"), "worked in a terminal")
    write(workspace / "either", "1")
    last = history.mark("after", "turn", ONE).entry
    assert newest(history).who.beside == "terminal"
    asked = {"entry": last, "since": before, "of": {"session": "one", "turn": 1}}
    assert HistoryService(history).handle("history.plan_revert", asked)["shared"] is True


def test_several_small_changes_of_the_owner_become_one_entry(history: History, workspace: Path) -> None:
    first = history.newest()
    for name in ("a", "b", "c", "d", "a"):
        history.note("before", OWNER, f"saved {name}")
        write(workspace / name, name)
        history.note("after", OWNER, f"saved {name}")
    assert history.newest() == first
    history.take_quiet_snapshot("")
    assert (newest(history).who, newest(history).why) == (OWNER, "saved a, saved b, saved c and 1 more")


def test_an_activity_that_never_ends_is_forgotten() -> None:
    now = [0.0]
    attribution = Attribution(lambda: now[0])
    attribution.begin_activity(ONE, "")
    attribution.note_activity(OWNER, "saved a")
    now[0] = NOTE_SECONDS + 1
    assert attribution.find_author("")[0] == ONE
    now[0] = MAX_ACTIVITY_SECONDS + 1
    assert attribution.find_author("") == (UNKNOWN, "")
    attribution.begin_activity(ONE, "")
    attribution.reset()
    attribution.forget_activities("agent")
    assert not attribution.is_anyone_active()
