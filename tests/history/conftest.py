from collections.abc import Iterator
from pathlib import Path

import pytest

from freehold.history import History, HistorySettings


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def history(tmp_path: Path, workspace: Path) -> Iterator[History]:
    """Watching, with the empty workspace as entry 1 and no quiet snapshots."""
    with History(tmp_path / "history", {"workspace": workspace}, HistorySettings(quiet=0)) as opened:
        opened.start()
        opened.snapshot()
        yield opened
