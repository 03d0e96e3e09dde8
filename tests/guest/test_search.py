"""The text search: lines, columns and limits, compared with a line-by-line search."""

import json
import os
import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from freehold.guest import search


def by_line(data: bytes, pattern: "re.Pattern[bytes]") -> list[tuple[int, int, str]]:
    found = []
    for number, line in enumerate(data.split(b"\n"), 1):
        match = pattern.search(line)
        if match is not None:
            found.append((number, match.start() + 1, os.fsdecode(line[: search.MAX_LINE_SHOWN])))
    return found


@given(st.lists(st.sampled_from([b"needle", b"hay", b" ", b"\n", b"", b"\xff", b"need"]), max_size=30).map(b"".join))
def test_hits_are_those_of_a_search_by_line(data: bytes) -> None:
    pattern = re.compile(b"needle", re.MULTILINE)
    assert list(search._hits(data, pattern)) == by_line(data, pattern)


def test_a_match_far_from_the_begin_of_its_line_is_in_the_text_that_is_shown(tmp_path: Path) -> None:
    long = "ä" * 3_000
    (tmp_path / "one.min.js").write_text(f"near needle {long}\n{long}needle{long}\n{long} needle")
    rows, _ = run_search(tmp_path, b"needle")
    assert [(row[1], row[2]) for row in rows] == [(1, 6), (2, 6_001), (3, 6_002)]
    near, middle, end = (row[3] for row in rows)
    assert near.startswith("near needle ä")
    assert middle.startswith(f"…{'ä' * 50}needleä")
    assert end == f"…{'ä' * 49} needle"
    assert all(
        len(text.encode(errors="replace")) <= search.MAX_LINE_SHOWN + len("…".encode()) for text in (near, middle, end)
    )


def run_search(folder: Path, pattern: bytes, **message: Any) -> tuple[list[Any], dict[str, Any]]:
    reading, writing = os.pipe()
    answer = search._search(writing, os.fsencode(folder), re.compile(pattern), {"most": 1000, **message})
    os.close(writing)
    with os.fdopen(reading, "rb") as lines:
        rows = [row for line in lines for row in json.loads(line)["part"]]
    return rows, answer


def test_names_are_relative_and_globs_and_skips_are_obeyed(tmp_path: Path) -> None:
    for name in ("a.py", "b.txt", "skipped/c.py", "deep/er/d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\nneedle\n")
    rows, answer = run_search(tmp_path, b"needle", glob="*.py", skip=["skipped"])
    assert sorted(row[0] for row in rows) == ["a.py", "deep/er/d.py"]
    assert all(row[1:] == [2, 1, "needle"] for row in rows)
    assert answer["more"] is False


def test_a_limit_is_reported(tmp_path: Path) -> None:
    (tmp_path / "many").write_text("needle\n" * 10)
    rows, answer = run_search(tmp_path, b"needle", most=3)
    assert len(rows) == 3
    assert answer["more"] is True


def test_binary_and_special_files_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"needle\0")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "secret").symlink_to("/proc/self/environ")
    assert run_search(tmp_path, b"needle")[0] == []


def test_a_single_file_can_be_searched(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a needle")
    assert run_search(tmp_path / "file", b"needle")[0] == [["", 1, 3, "a needle"]]
