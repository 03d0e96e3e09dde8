"""The owner is told that a disk is full or nearly, with numbers."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from freehold.keeper.disk_space import measure_disks

GB = 1_000_000_000


def disk(free: int, size: int = 20 * GB, names: int = 1000) -> SimpleNamespace:
    return SimpleNamespace(f_blocks=size // 1000, f_frsize=1000, f_bavail=free // 1000, f_files=2000, f_favail=names)


@pytest.mark.parametrize(
    ("found", "state", "words"),
    [
        (disk(15 * GB), "ok", "15 GB of 20 GB free"),
        (disk(950_000_000), "low", "The disk is nearly full: 950 MB of 20 GB free"),
        (disk(8_000), "full", "The disk is full: 8.0 KB of 20 GB free"),
        (disk(15 * GB, names=0), "full", "no inode"),
        (disk(300_000_000, size=500_000_000), "ok", "300 MB of 500 MB free"),  # a small disk with much room
        (disk(20_000_000, size=500_000_000), "low", "20 MB of 500 MB free"),
        (disk(30 * GB, size=4_000 * GB), "ok", "30 GB of 4.0 TB free"),
    ],
)
def test_a_disk_is_low_or_full_by_its_size(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: SimpleNamespace, state: str, words: str
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _folder: found)
    status = measure_disks([tmp_path])
    assert (status.state, status.folder) == (state, str(tmp_path))
    assert words in status.words


def test_the_fullest_disk_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    workspace.mkdir()
    monkeypatch.setattr(os, "statvfs", lambda folder: disk(8_000) if folder == workspace else disk(15 * GB))
    assert measure_disks([home, workspace, tmp_path / "missing"]).folder == str(workspace)
