"""A plan and its result show the same fates of the same paths, in the same words and counts."""

import os
from pathlib import Path
from typing import Any

from tests.history.tree import write

from freehold.history import History, HistorySettings
from freehold.history.fates import DONE_WORDS, PLANNED_WORDS, count_fates
from freehold.history.model import PathFate
from freehold.history.service import HistoryService

OWNER = {"by": "owner"}


def list_fates(items: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(item["path"], item["fate"], item["detail"]) for item in items]


def make_every_kind_of_change(workspace: Path) -> None:
    write(workspace / "changed", "new")
    write(workspace / "added", "x")
    (workspace / "gone").unlink()
    (workspace / "folder" / "inner").unlink()
    (workspace / "folder").rmdir()
    (workspace / "script").chmod(0o755)
    os.utime(workspace / "touched", ns=(1, 1))
    os.mkfifo(workspace / "pipe")


def test_an_undo_has_the_fates_of_its_preview(history: History, workspace: Path) -> None:
    service = HistoryService(history)
    for name in ("changed", "gone", "script", "touched", "folder/inner"):
        write(workspace / name, name)
    history.snapshot()
    make_every_kind_of_change(workspace)
    plan = service.handle("history.plan_undo", {})
    result = service.handle("history.undo", {"who": OWNER})
    assert list_fates(plan["steps"]) == list_fates(result["fates"])
    assert {item["path"].removeprefix("workspace/"): item["word"] for item in result["fates"]} == {
        "added": "removed",
        "changed": "restored",
        "folder": "created folder",
        "folder/inner": "restored",
        "gone": "restored",
        "pipe": "left alone",
        "script": "set mode",
        "touched": "set time",
    }
    assert plan["counts"] == result["counts"]
    assert result["counts"] == {"restored": 4, "removed": 1, "adjusted": 2, "left_alone": 1, "failed": 0}
    assert plan["summary"] == "4 to restore, 1 to remove, 2 to set mode or time, 1 to leave alone"
    assert result["summary"] == "4 restored, 1 removed, 2 with mode or time set, 1 left alone"
    assert (plan["total"], result["total"], result["done"]) == (8, 8, 7)


def test_a_path_that_fails_is_named_with_its_reason(tmp_path: Path, workspace: Path) -> None:
    with History(tmp_path / "history", {"workspace": workspace}, HistorySettings(quiet=0)) as history:
        write(workspace / "fine", "1")
        write(workspace / "damaged", "2")
        history.snapshot()
        (workspace / "fine").unlink()
        (workspace / "damaged").unlink()
        history.snapshot()
        history._db.execute("UPDATE content SET data = zeroblob(length(data)) WHERE size = 1 AND data = ?", (b"2",))
        result = HistoryService(history).handle("history.undo", {"who": OWNER})
    fates = {item["path"]: (item["word"], item["detail"]) for item in result["fates"]}
    assert fates["workspace/fine"] == ("restored", "")
    assert fates["workspace/damaged"][0] == "failed"
    assert "damaged" in fates["workspace/damaged"][1]
    assert result["summary"] == "1 restored, 1 failed"
    assert [item["path"] for item in result["unsettled"]] == ["workspace/damaged"]


def test_a_folder_whose_time_alone_changes_is_not_listed(history: History, workspace: Path) -> None:
    write(workspace / "file", "1")
    history.snapshot("turn")
    service = HistoryService(history)
    plan = service.handle("history.plan_undo", {})
    assert list_fates(plan["steps"]) == [("workspace/file", "remove", "")]
    result = service.handle("history.undo", {"who": OWNER})
    assert list_fates(result["fates"]) == [("workspace/file", "remove", "")]
    assert (plan["total"], result["done"]) == (1, 1)


def test_every_fate_has_words_and_a_group() -> None:
    for fate in DONE_WORDS:
        assert PLANNED_WORDS[fate]
        assert sum(count_fates([PathFate(b"x", fate, "")]).values()) == 1
