"""The calls of history: plain JSON, strict, and bounded for any file names."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.history.tree import write

from freehold.errors import FreeholdError
from freehold.history import History
from freehold.history.diff import MAX_DIFF_BYTES
from freehold.history.service import MAX_REPLY_CHARS, MAX_SHOWN_BYTES, HistoryService
from freehold.keeper.wire import MAX_REPLY


@pytest.fixture
def service(history: History) -> HistoryService:
    return HistoryService(history)


def ask(service: HistoryService, method: str, **params: Any) -> Any:
    return json.loads(json.dumps(service.handle(method, json.loads(json.dumps(params)))))


def test_a_turn_from_mark_to_undo(service: HistoryService, workspace: Path) -> None:
    assert ask(service, "history.mark", phase="before") == {"entry": 1, "changed": False}
    write(workspace / "a.txt", "one\n")
    who = {"by": "agent", "agent": "claude", "session": "s", "turn": "3", "prompt": "do it"}
    assert ask(service, "history.mark", phase="after", kind="turn", who=who, why="do it") == {
        "entry": 2,
        "changed": True,
    }
    entry = ask(service, "history.log")["entries"][0]
    assert entry["who"] == who
    assert (entry["added"], entry["lines_added"], entry["lines_removed"]) == (1, 1, 0)
    assert ask(service, "history.changes", entry=2)["changes"] == [
        {"path": "workspace/a.txt", "word": "added", "what": "a file"}
    ]
    assert "+one" in ask(service, "history.diff", entry=2)["files"][0]["text"]
    plan = ask(service, "history.plan_undo")
    assert plan["steps"] == [{"path": "workspace/a.txt", "fate": "remove", "word": "remove", "detail": ""}]
    assert ask(service, "history.undo", who={"by": "owner"})["unsettled"] == []
    assert not (workspace / "a.txt").exists()
    assert ask(service, "history.redo", who={"by": "owner"})["entry"]["equals"] == 2
    assert ask(service, "history.status")["watching"] is True


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("history.undo", {"entry": "3"}),
        ("history.undo", {"entry": True}),
        ("history.undo", {"nope": 1, "who": {"by": "owner"}}),
        ("history.undo", {}),
        ("history.redo", {}),
        ("history.restore", {"entry": 1}),
        ("history.revert", {"entry": 1}),
        ("history.recover", {"finish": True}),
        ("history.restore", {}),
        ("history.restore", {"entry": 1, "paths": [1]}),
        ("history.mark", {"phase": "during"}),
        ("history.mark", {"phase": "after", "who": {"by": "nobody"}}),
        ("history.mark", {"phase": "after", "who": {"by": "agent", "extra": 1}}),
        ("history.restore", {"entry": 1, "paths": ["workspace/../../etc"]}),
        ("history.restore", {"entry": 1, "paths": ["/etc/passwd"]}),
        ("history.nothing", {}),
    ],
)
def test_a_call_with_wrong_parameters_is_refused(service: HistoryService, method: str, params: dict[str, Any]) -> None:
    with pytest.raises(FreeholdError):
        service.handle(method, params)


def test_a_large_file_is_shown_in_parts(service: HistoryService, workspace: Path) -> None:
    data = bytes(range(256)) * (MAX_SHOWN_BYTES // 256) + b"the end"
    write(workspace / "large", data)
    entry = ask(service, "history.snapshot")["entry"]
    shown, more = b"", True
    while more:
        part = ask(service, "history.show", entry=entry, path="workspace/large", offset=len(shown))
        shown, more = shown + base64.b64decode(part["base64"]), part["more"]
    assert shown == data


def test_replies_are_bounded_for_long_file_names(service: HistoryService, workspace: Path) -> None:
    folder = workspace
    for number in range(12):
        folder = folder / (f"{number}" + "\x01" * 240)
    folder.mkdir(parents=True)
    for number in range(450):
        (folder / f"{number}{chr(1) * 200}").touch()
    entry = ask(service, "history.snapshot")["entry"]
    for answer in (ask(service, "history.changes", entry=entry), ask(service, "history.plan_undo")):
        assert len(json.dumps(answer)) < MAX_REPLY_CHARS * 2
        assert answer["total"] > 450


def test_paths_may_be_spelled_as_on_the_machine_or_as_in_the_computer(service: HistoryService, workspace: Path) -> None:
    write(workspace / "a", "x")
    entry = ask(service, "history.snapshot")["entry"]
    for spelling in ("workspace/a", "/workspace/a", str(workspace / "a")):
        assert ask(service, "history.show", entry=entry, path=spelling)["size"] == 1


def test_ten_thousand_long_lines_are_compared(service: HistoryService, workspace: Path) -> None:
    lines = [f"{number:05} {'x' * 300}\n" for number in range(10_000)]
    write(workspace / "long.txt", "".join(lines))
    first = ask(service, "history.snapshot")["entry"]
    lines[7_000] = "another line\n"
    write(workspace / "long.txt", "".join(lines))
    second = ask(service, "history.snapshot")["entry"]
    (changed,) = ask(service, "history.compare", old=first, new=second)["files"]
    assert (changed["binary"], changed["added"], changed["removed"]) == (False, 1, 1)
    (whole,) = ask(service, "history.compare", old=0, new=second, path="workspace/long.txt")["files"]
    assert (whole["binary"], whole["added"], whole["text"].count("\n+")) == (False, 10_000, 10_001)


def test_a_diff_that_no_reply_holds_is_said_to_be_too_large(service: HistoryService, workspace: Path) -> None:
    write(workspace / "controls.txt", "\x01" * 1_000 + "\n")
    first = ask(service, "history.snapshot")["entry"]
    write(workspace / "controls.txt", ("\x01" * 1_000 + "\n") * 4_000)
    write(workspace / "size.txt", "a line\n" * (MAX_DIFF_BYTES // 7 + 1))
    second = ask(service, "history.snapshot")["entry"]
    found = ask(service, "history.compare", old=first, new=second)
    assert len(json.dumps(found)) < MAX_REPLY
    for file in found["files"]:
        assert file["note"].startswith("too large to show: ")
        assert (file["text"], file["binary"]) == ("", True)
    assert len(found["files"]) == 2


def test_the_changed_paths_are_read_in_pages(service: HistoryService, workspace: Path) -> None:
    first = ask(service, "history.snapshot")["entry"]
    for number in range(7):
        write(workspace / f"{number}.txt", f"{number}\n")
    second = ask(service, "history.snapshot")["entry"]
    pages: list[list[str]] = []
    while not pages or sum(map(len, pages)) < 7:
        skip = sum(map(len, pages))
        found = ask(service, "history.compare", old=first, new=second, limit=3, skip=skip)
        assert found["total"] == 7
        pages.append([file["path"] for file in found["files"]])
    assert pages == [[f"workspace/{number}.txt" for number in part] for part in ((0, 1, 2), (3, 4, 5), (6,))]
    assert ask(service, "history.compare", old=first, new=second, skip=7)["files"] == []


def test_two_states_are_compared_in_both_directions(service: HistoryService, workspace: Path) -> None:
    write(workspace / "a.txt", "one\ntwo\n")
    first = ask(service, "history.snapshot")["entry"]
    write(workspace / "a.txt", "one\n2\n")
    write(workspace / "b.bin", b"\0" * 10)
    second = ask(service, "history.snapshot")["entry"]
    write(workspace / "a.txt", "one\n2\n3\n")
    third = ask(service, "history.snapshot")["entry"]

    whole = ask(service, "history.compare", old=first, new=third)
    assert (whole["old"]["id"], whole["new"]["id"], whole["total"]) == (first, third, 2)
    text, binary = whole["files"]
    assert (text["path"], text["word"], text["added"], text["removed"]) == ("workspace/a.txt", "changed", 2, 1)
    assert "-two\n+2\n+3\n" in text["text"]
    assert (binary["word"], binary["binary"], binary["old_size"], binary["new_size"]) == ("added", True, None, 10)

    back = ask(service, "history.compare", old=third, new=first)
    assert [file["word"] for file in back["files"]] == ["changed", "removed"]
    assert ask(service, "history.compare", new=third)["old"]["id"] == second
    one = ask(service, "history.compare", old=first, new=third, path="workspace/b.bin")
    assert [file["path"] for file in one["files"]] == ["workspace/b.bin"]
    nothing = ask(service, "history.compare", old=0, new=first)
    assert nothing["old"] is None
    assert "workspace/a.txt" in [file["path"] for file in nothing["files"]]
    with pytest.raises(FreeholdError, match="no entry 99"):
        ask(service, "history.compare", old=99, new=first)


def test_the_last_known_good_state_is_found_until_its_mark_is_taken_away(
    service: HistoryService, workspace: Path
) -> None:
    with pytest.raises(FreeholdError, match="known good"):
        ask(service, "history.compare", good=True, new=1)
    write(workspace / "a.txt", "good\n")
    good = ask(service, "history.snapshot")["entry"]
    assert ask(service, "history.good", entry=good)["entry"]["good"] is True
    write(workspace / "a.txt", "bad\n")
    bad = ask(service, "history.snapshot")["entry"]
    assert ask(service, "history.compare", good=True, new=bad)["old"]["id"] == good
    assert ask(service, "history.good", entry=good, good=False)["entry"]["good"] is False
    with pytest.raises(FreeholdError, match="known good"):
        ask(service, "history.compare", good=True, new=bad)
    with pytest.raises(FreeholdError, match="no entry 99"):
        ask(service, "history.good", entry=99)
