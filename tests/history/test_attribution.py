"""Whose an entry is: of whoever was at work, and of a turn only what was taken for it."""

from pathlib import Path

import pytest
from tests.history.tree import write

from freehold.errors import FreeholdError
from freehold.history import History, Who
from freehold.history.doing import LONGEST, RECENT, Doing
from freehold.history.model import UNKNOWN, Entry, Turn
from freehold.history.service import HistoryService

ONE = Who("agent", agent="claude", session="one", turn="1")
TWO = Who("agent", agent="codex", session="two", turn="4")
OWNER = Who("owner")


def newest(history: History) -> Entry:
    return history.entry(history.newest())


def test_what_is_found_in_the_midst_of_a_turn_is_that_turns(history: History, workspace: Path) -> None:
    history.mark("before", "turn", ONE, "tidy")
    write(workspace / "first", "1")
    history.quiet_snapshot("")
    assert (newest(history).kind, newest(history).who) == ("quiet", ONE)
    history.mark("after", "turn", ONE, "tidy")
    write(workspace / "later", "2")
    history.quiet_snapshot("")
    assert newest(history).who == UNKNOWN


def test_an_entry_of_one_turn_says_who_else_worked_meanwhile(history: History, workspace: Path) -> None:
    history.mark("before", "turn", ONE)
    write(workspace / "first", "1")
    history.mark("before", "turn", TWO)
    assert newest(history).who == ONE
    write(workspace / "second", "2")
    history.mark("after", "turn", TWO)
    assert (newest(history).who.session, newest(history).who.beside) == ("two", "agent:one:1")
    assert Turn("one", "1").was_beside(newest(history).who)
    write(workspace / "third", "3")
    history.mark("after", "turn", ONE)
    assert newest(history).who == ONE


def test_a_turn_is_taken_back_without_what_others_did_in_its_midst(history: History, workspace: Path) -> None:
    before = history.mark("before", "turn", ONE).entry
    write(workspace / "first", "1")
    history.note("before", OWNER, "saved mine")
    write(workspace / "mine", "own")
    history.note("after", OWNER, "saved mine")
    assert (newest(history).who, newest(history).why) == (OWNER, "saved mine")
    write(workspace / "second", "2")
    last = history.mark("after", "turn", ONE).entry
    assert not history.plan_revert(last, since=before, of=Turn("one", "1")).shared
    assert history.revert(last, since=before, of=Turn("one", "1")).unsettled == ()
    assert not (workspace / "first").exists()
    assert not (workspace / "second").exists()
    assert (workspace / "mine").read_text() == "own"


def test_the_owners_undo_in_the_midst_of_a_turn_is_not_the_turns(history: History, workspace: Path) -> None:
    write(workspace / "old", "1")
    history.snapshot()
    before = history.mark("before", "turn", ONE).entry
    history.undo(who=OWNER)
    history.redo(who=OWNER)
    last = history.mark("after", "turn", ONE).entry
    assert last > before
    assert history.plan_revert(last, since=before, of=Turn("one", "1")).steps == ()


def test_a_file_others_changed_between_two_entries_of_a_turn_is_the_owners_to_decide(
    history: History, workspace: Path
) -> None:
    before = history.mark("before", "turn", ONE).entry
    write(workspace / "file", "agent\n")
    history.note("before", OWNER, "saved file")
    write(workspace / "file", "agent\nowner\n")
    history.note("after", OWNER, "saved file")
    write(workspace / "file", "agent\nowner\nagent\n")
    last = history.mark("after", "turn", ONE).entry
    plan = history.plan_revert(last, since=before, of=Turn("one", "1"))
    assert [conflict.reason for conflict in plan.conflicts] == ["somebody else changed it in between"]
    with pytest.raises(FreeholdError, match="nothing was written"):
        history.revert(last, since=before, of=Turn("one", "1"))
    history.revert(last, {"": "mine"}, OWNER, before, Turn("one", "1"))
    assert (workspace / "file").read_text() == "agent\nowner\nagent\n"


def test_a_plan_says_when_part_of_a_turns_work_may_be_anothers(history: History, workspace: Path) -> None:
    before = history.mark("before", "turn", ONE).entry
    history.note("during", Who("terminal", terminal="t1"), "worked in a terminal")
    write(workspace / "either", "1")
    last = history.mark("after", "turn", ONE).entry
    assert newest(history).who.beside == "terminal"
    asked = {"entry": last, "since": before, "of": {"session": "one", "turn": 1}, "dry_run": True}
    assert HistoryService(history).handle("history.revert", asked)["shared"] is True


def test_small_acts_of_the_owner_become_one_entry_that_names_them(history: History, workspace: Path) -> None:
    first = history.newest()
    for name in ("a", "b", "c", "d", "a"):
        history.note("before", OWNER, f"saved {name}")
        write(workspace / name, name)
        history.note("after", OWNER, f"saved {name}")
    assert history.newest() == first
    history.quiet_snapshot("")
    assert (newest(history).who, newest(history).why) == (OWNER, "saved a, saved b, saved c and 1 more")


def test_whoever_never_said_it_was_done_is_not_at_work_for_ever() -> None:
    now = [0.0]
    doing = Doing(lambda: now[0])
    doing.begin(ONE, "")
    doing.note(OWNER, "saved a")
    now[0] = RECENT + 1
    assert doing.author("")[0] == ONE
    now[0] = LONGEST + 1
    assert doing.author("") == (UNKNOWN, "")
    doing.begin(ONE, "")
    doing.taken()
    doing.forget("agent")
    assert not doing.is_anybody_at_work()


def test_a_folder_whose_time_alone_is_put_back_is_no_step_of_a_plan(history: History, workspace: Path) -> None:
    write(workspace / "file", "1")
    history.snapshot("turn")
    plan = HistoryService(history).handle("history.undo", {"dry_run": True})
    assert [(step["fate"], step["path"]) for step in plan["steps"]] == [("remove", "workspace/file")]
    assert plan["total"] == 1
