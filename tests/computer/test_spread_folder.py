"""A hint to the file system, and nothing else: it is set where it is known, and what is refused changes nothing."""

import errno
from pathlib import Path
from typing import Any

import pytest

from freehold.computer.library import spread_folder
from freehold.computer.library.spread_folder import mark_spread


def count_open() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_the_mark_is_set_once_and_other_flags_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = 0x80  # no access times

    def ioctl(_handle: int, request: int, words: bytes) -> bytes:
        nonlocal flags
        if request == spread_folder._SET_FLAGS:
            (flags,) = spread_folder._FLAGS.unpack(words)
        return spread_folder._FLAGS.pack(flags)

    monkeypatch.setattr(spread_folder, "ioctl", ioctl)
    mark_spread(tmp_path)
    mark_spread(tmp_path)
    assert flags == 0x80 | spread_folder._TOP_OF_HIERARCHIES


def test_a_file_system_without_it_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> bytes:
        raise OSError(errno.ENOTTY, "not known")

    monkeypatch.setattr(spread_folder, "ioctl", refuse)
    before = count_open()
    mark_spread(tmp_path)
    mark_spread(tmp_path / "missing")
    assert count_open() == before
