"""The soak finds what is missing: each kind of loss is made by hand and named."""

from pathlib import Path
from typing import Any

import pytest
from tests.soak.file_model import FileModel
from tests.soak.ledger import Event, Ledger, SentAnswer, SentPrompt
from tests.soak.soak import find_tracebacks

SESSION = "s"


def event(seq: int, kind: str, turn: int = 1, **data: Any) -> Event:
    return {"seq": seq, "at": "now", "turn": turn, "kind": kind, "data": data}


def one_turn() -> list[Event]:
    return [
        event(1, "turn.started", key="k", prompt={"text": "words"}),
        event(2, "approval", id="a", state="pending", answer=None),
        event(3, "approval", id="a", state="answered", answer="once"),
        event(4, "turn.ended", stop_reason="end_turn"),
    ]


@pytest.fixture
def ledger() -> Ledger:
    """Of one turn whose prompt and answer were acknowledged and whose events were seen."""
    ledger = Ledger()
    ledger.prompts["k"] = SentPrompt(SESSION, "k", "words", turn=1)
    ledger.answers["a"] = SentAnswer(SESSION, "a", "once")
    for each in one_turn():
        assert ledger.note_event(SESSION, each) is None
    return ledger


def test_nothing_is_wrong_when_everything_is_there(ledger: Ledger) -> None:
    assert ledger.find_missing({SESSION: one_turn()}) == []


def test_a_session_that_is_gone_is_found(ledger: Ledger) -> None:
    assert ledger.find_missing({}) == ["session s is missing"]


def test_an_event_that_is_missing_or_changed_is_found(ledger: Ledger) -> None:
    assert "event 4 of session s was seen and is missing" in ledger.find_missing({SESSION: one_turn()[:3]})
    changed = [*one_turn()[:3], event(4, "turn.ended", stop_reason="error")]
    assert ledger.find_missing({SESSION: changed}) == ["event 4 of session s has changed since it was seen"]


def test_a_gap_in_the_numbers_is_found() -> None:
    ledger = Ledger(events={SESSION: {}})
    assert ledger.find_missing({SESSION: [event(2, "info")]}) == ["the events of session s are not numbered 1 to 1"]


def test_an_acknowledged_prompt_that_never_started_is_found() -> None:
    ledger = Ledger(prompts={"k": SentPrompt(SESSION, "k", "words", turn=1)})
    assert ledger.find_missing({SESSION: []}) == ["prompt k of session s, acknowledged as turn 1, never started"]
    ledger.prompts["k"].turn = None
    assert ledger.find_missing({SESSION: []}) == [], "one that was not acknowledged may be missing"


def test_a_prompt_that_ran_twice_or_did_not_end_is_found() -> None:
    ledger = Ledger(prompts={"k": SentPrompt(SESSION, "k", "words", turn=1)})
    twice = [event(seq, "turn.started", turn=seq, key="k", prompt={"text": "words"}) for seq in (1, 2)]
    found = ledger.find_missing({SESSION: twice})
    assert "prompt k of session s was started 2 times" in found
    assert "turn 2 of session s has ended 0 times" in found


def test_an_answer_that_is_missing_or_another_is_found(ledger: Ledger) -> None:
    ledger.answers["b"] = SentAnswer(SESSION, "b", "once")
    ledger.answers["a"] = SentAnswer(SESSION, "a", "reject")
    assert sorted(ledger.find_missing({SESSION: one_turn()})) == [
        "approval a of session s was answered 'reject' and is now answered with 'once'",
        "approval b of session s was answered and is missing",
    ]


def test_a_prompt_that_gets_another_turn_at_the_second_try_is_found() -> None:
    ledger, prompt = Ledger(), SentPrompt(SESSION, "k", "words")
    assert ledger.note_prompt(prompt, 1) is None
    assert ledger.note_prompt(prompt, 1) is None
    assert ledger.note_prompt(prompt, 2) == "prompt k of session s is turn 2 and was turn 1 before"


def test_a_file_may_have_what_was_tried_and_must_have_what_was_acknowledged(tmp_path: Path) -> None:
    files = FileModel()
    files.settle("a", "one")
    (tmp_path / "a").write_text("one")
    files.begin("a", "two")
    assert files.find_differences(tmp_path) == [], "the second is not known to be done"
    (tmp_path / "a").write_text("two")
    assert files.find_differences(tmp_path) == []
    files.settle("a", "three")
    assert files.find_differences(tmp_path) == ["a contains 'two', and can only contain 'three'"]


def test_a_refused_change_must_not_be_there(tmp_path: Path) -> None:
    files = FileModel()
    before = files.begin("a", "one")
    files.refuse("a", before)
    (tmp_path / "a").write_text("one")
    assert files.find_differences(tmp_path) == ["a contains 'one', and can only contain None"]


def test_a_line_that_is_lost_doubled_or_foreign_is_found(tmp_path: Path) -> None:
    files = FileModel()
    for line in ("one", "two", "three"):
        files.begin_line("log", line)
    files.settle_line("log", "one")
    files.settle_line("log", "two")
    (tmp_path / "log").write_text("two\ntwo\nother\n")
    assert files.find_differences(tmp_path) == [
        "log has lost the line one",
        "log has the line 'other', which nobody wrote",
        "log has lines twice: two",
    ]


def test_a_file_that_nobody_made_is_found(tmp_path: Path) -> None:
    (tmp_path / "stray").touch()
    assert FileModel().find_differences(tmp_path) == ["stray was made by nobody"]


def test_an_unexpected_error_in_a_log_is_found_once(tmp_path: Path) -> None:
    line = '{"message": "failed", "traceback": "Traceback (most recent call last):\\n  ValueError: 17"}\n'
    (tmp_path / "gateway.jsonl").write_text(line + line.replace("17", "18") + '{"message": "fine"}\n')
    (found,) = find_tracebacks(tmp_path)
    assert found.startswith("2 × in the log gateway.jsonl: ")
