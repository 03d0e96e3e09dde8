"""One shape of questions and answers: plain JSON, strict, bounded whatever the files are called."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.history.tree import write

from freehold.errors import FreeholdError
from freehold.history import History
from freehold.history.service import MOST_SHOWN, MOST_TEXT, HistoryService


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
    plan = ask(service, "history.undo", dry_run=True)
    assert {"path": "workspace/a.txt", "fate": "remove", "detail": ""} in plan["steps"]
    assert ask(service, "history.undo", who={"by": "owner"})["unsettled"] == []
    assert not (workspace / "a.txt").exists()
    assert ask(service, "history.redo")["entry"]["equals"] == 2
    assert ask(service, "history.status")["watching"] is True


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("history.undo", {"entry": "3"}),
        ("history.undo", {"entry": True}),
        ("history.undo", {"nope": 1}),
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
def test_a_wrong_question_is_refused(service: HistoryService, method: str, params: dict[str, Any]) -> None:
    with pytest.raises(FreeholdError):
        service.handle(method, params)


def test_a_large_file_is_shown_in_parts(service: HistoryService, workspace: Path) -> None:
    data = bytes(range(256)) * (MOST_SHOWN // 256) + b"the end"
    write(workspace / "large", data)
    entry = ask(service, "history.snapshot")["entry"]
    shown, more = b"", True
    while more:
        part = ask(service, "history.show", entry=entry, path="workspace/large", offset=len(shown))
        shown, more = shown + base64.b64decode(part["base64"]), part["more"]
    assert shown == data


def test_answers_stay_bounded_whatever_the_names_are(service: HistoryService, workspace: Path) -> None:
    folder = workspace
    for number in range(12):
        folder = folder / (f"{number}" + "\x01" * 240)
    folder.mkdir(parents=True)
    for number in range(450):
        (folder / f"{number}{chr(1) * 200}").touch()
    entry = ask(service, "history.snapshot")["entry"]
    for answer in (ask(service, "history.changes", entry=entry), ask(service, "history.undo", dry_run=True)):
        assert len(json.dumps(answer)) < MOST_TEXT * 2
        assert answer["total"] > 450


def test_paths_may_be_spelled_as_on_the_machine_or_as_in_the_computer(service: HistoryService, workspace: Path) -> None:
    write(workspace / "a", "x")
    entry = ask(service, "history.snapshot")["entry"]
    for spelling in ("workspace/a", "/workspace/a", str(workspace / "a")):
        assert ask(service, "history.show", entry=entry, path=spelling)["size"] == 1
