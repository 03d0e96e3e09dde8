"""Logs are structured, rotated and bounded, whatever a program writes and whatever the disk says."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.keeper.conftest import SHORT, Workshop

from freehold.errors import FreeholdError
from freehold.keeper.logbook import Logbook, log_file
from freehold.keeper.logreader import LogReader, parse_since, programs_with_logs
from freehold.keeper.settings import LogLimits

SMALL = LogLimits(file_bytes=20_000, files=3, line_bytes=1000)


def lines_of(folder: Path, program: str | None = None) -> list[dict[str, Any]]:
    return list(LogReader(folder, program).kept())


def test_lines_are_kept_with_time_program_and_stream(tmp_path: Path) -> None:
    with Logbook(tmp_path, SMALL, lambda: 1_800_000_000.25) as book:
        book.write("gateway", "stderr", b"plain words")
        book.write("gateway", "stdout", b'{"level": "WARNING", "message": "made of parts", "n": 3}')
        book.write("gateway", "stdout", b"{not json")
    first, second, third = lines_of(tmp_path)
    assert first == {
        "time": "2027-01-15T08:00:00.250Z",
        "program": "gateway",
        "stream": "stderr",
        "message": "plain words",
    }
    assert (second["level"], second["message"], second["data"]["n"]) == ("warning", "made of parts", 3)
    assert third["message"] == "{not json"


def test_files_are_rotated_and_never_more_than_allowed(tmp_path: Path) -> None:
    with Logbook(tmp_path, SMALL, time.time) as book:
        for number in range(2000):
            book.write("chatty", "stdout", f"line {number}".encode())
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["chatty.1.jsonl", "chatty.2.jsonl", "chatty.jsonl"]
    assert all(path.stat().st_size <= SMALL.file_bytes for path in tmp_path.iterdir())
    assert lines_of(tmp_path)[-1]["message"] == "line 1999"


def test_a_book_whose_folder_is_gone_counts_what_is_lost_and_heals(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    book = Logbook(folder, SMALL, time.time)
    with book:
        for number in range(5):
            book.write("program", "stdout", f"lost {number}".encode())
    folder.mkdir()
    healed = Logbook(folder, SMALL, time.time)
    healed._lost = book._lost
    with healed:
        healed.write("program", "stdout", b"kept")
    note, kept = lines_of(folder)
    assert note["message"] == "5 lines could not be written and are lost"
    assert kept["message"] == "kept"


async def test_a_flood_is_bounded_in_rate_and_size_and_says_what_was_dropped(workshop: Workshop) -> None:
    limits = LogLimits(file_bytes=50_000, files=2, bytes_per_second=1000, burst_bytes=300_000)
    once = replace(SHORT.restart, loop_deaths=1, loop_wait=3600)
    workshop.tune(replace(SHORT, logs=limits, restart=once))
    source = "import sys\nfor n in range(4000): sys.stdout.write('x' * 999 + '\\n')"
    async with workshop.running() as supervisor:
        supervisor.start(workshop.program("flood", source))
        await workshop.until(lambda: "program.died" in workshop.kinds("flood"))
    workshop.book.flush()
    lines = lines_of(workshop.folder / "logs", "flood")
    assert sum(line.get("dropped_bytes", 0) for line in lines) > 3_000_000
    assert len([line for line in lines if line["stream"] == "stdout"]) <= 300


async def test_a_line_that_never_ends_is_cut_and_marked(workshop: Workshop) -> None:
    source = (
        "import sys; sys.stdout.write('y' * 100_000 + '\\nshort\\n'); sys.stdout.flush(); import signal; signal.pause()"
    )
    async with workshop.running():
        await workshop.start_and_hear(workshop.program("long", source))
    workshop.book.flush()
    long, short = lines_of(workshop.folder / "logs", "long")
    assert long["truncated"]
    assert len(long["message"]) == 16 << 10
    assert short["message"] == "short"


async def test_a_follower_that_falls_behind_is_told_so(tmp_path: Path) -> None:
    with Logbook(tmp_path, LogLimits(), time.time) as book:
        lines = book.follow()
        first = asyncio.ensure_future(anext(lines))
        await asyncio.sleep(0)
        for number in range(3000):
            book.write("program", "stdout", str(number).encode())
        await first
        with pytest.raises(FreeholdError) as caught:
            await _exhaust(lines)
        assert caught.value.code == "logs.fell-behind"


async def _exhaust(lines: AsyncGenerator[dict[str, Any], None]) -> None:
    async for _ in lines:
        await asyncio.sleep(0)


def test_lines_of_all_programs_are_merged_by_time_and_cut_ones_are_skipped(tmp_path: Path) -> None:
    for program, moments in (("a", (1, 4)), ("b", (2, 3))):
        with log_file(tmp_path, program).open("w") as file:
            for moment in moments:
                file.write(json.dumps({"time": f"2026-01-01T00:00:0{moment}Z", "program": program}) + "\n")
            file.write('{"time": "cut off by a power')
    assert [line["time"][-2] for line in lines_of(tmp_path)] == ["1", "2", "3", "4"]
    assert [line["time"][-2] for line in LogReader(tmp_path).kept("2026-01-01T00:00:03")] == ["3", "4"]
    assert programs_with_logs(tmp_path) == ["a", "b"]


def test_following_goes_on_over_a_rotation_without_loss_or_repeat(tmp_path: Path) -> None:
    limits = LogLimits(file_bytes=2000, files=5)

    def write(first: int, count: int) -> None:
        with Logbook(tmp_path, limits, time.time) as book:
            for number in range(first, first + count):
                book.write("p", "stdout", str(number).encode())

    write(0, 5)
    reader = LogReader(tmp_path)
    kept = [line["message"] for line in reader.kept()]
    following = reader.follow()
    write(5, 10)
    seen = [next(following)["message"] for _ in range(10)]
    write(15, 12)  # into a new file
    seen += [next(following)["message"] for _ in range(12)]
    assert kept + seen == [str(number) for number in range(27)]


@pytest.mark.parametrize("text", ["", "ten minutes", "10", "5w", "2026-1-1", "1m; rm"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(FreeholdError) as caught:
        parse_since(text, 0)
    assert caught.value.code == "logs.bad-since"
