"""Logs are structured, rotated and limited, whatever a program writes and also on a broken disk."""

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.keeper.conftest import SHORT, SupervisorHarness

from freehold.errors import FreeholdError
from freehold.keeper.log_reader import LogReader, list_logged_programs, parse_since
from freehold.keeper.log_writer import LogWriter, log_file
from freehold.keeper.settings import LogLimits

SMALL = LogLimits(file_bytes=20_000, files=3, line_bytes=1000)


def lines_of(folder: Path, program: str | None = None) -> list[dict[str, Any]]:
    return list(LogReader(folder, program).stored_lines())


def test_lines_are_written_with_time_program_and_stream(tmp_path: Path) -> None:
    with LogWriter(tmp_path, SMALL, lambda: 1_800_000_000.25) as log_writer:
        log_writer.write("gateway", "stderr", b"plain words")
        log_writer.write("gateway", "stdout", b'{"level": "WARNING", "message": "made of parts", "n": 3}')
        log_writer.write("gateway", "stdout", b"{not json")
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
    with LogWriter(tmp_path, SMALL, time.time) as log_writer:
        for number in range(2000):
            log_writer.write("chatty", "stdout", f"line {number}".encode())
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["chatty.1.jsonl", "chatty.2.jsonl", "chatty.jsonl"]
    assert all(path.stat().st_size <= SMALL.file_bytes for path in tmp_path.iterdir())
    assert lines_of(tmp_path)[-1]["message"] == "line 1999"


def test_a_removed_log_folder_costs_only_lines_that_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    log_writer = LogWriter(folder, SMALL, time.time)
    with log_writer:
        for number in range(5):
            log_writer.write("program", "stdout", f"lost {number}".encode())
    folder.mkdir()
    healed = LogWriter(folder, SMALL, time.time)
    healed._lost = log_writer._lost
    with healed:
        healed.write("program", "stdout", b"supervised")
    note, supervised = lines_of(folder)
    assert note["message"] == "5 lines could not be written and are lost"
    assert supervised["message"] == "supervised"


async def test_a_flood_of_output_is_limited_and_dropped_lines_are_counted(harness: SupervisorHarness) -> None:
    limits = LogLimits(file_bytes=50_000, files=2, bytes_per_second=1000, burst_bytes=300_000)
    once = replace(SHORT.restart, loop_deaths=1, loop_wait=3600)
    harness.tune(replace(SHORT, logs=limits, restart=once))
    source = "import sys\nfor n in range(4000): sys.stdout.write('x' * 999 + '\\n')"
    async with harness.running() as supervisor:
        supervisor.start(harness.program("flood", source))
        await harness.until(lambda: "program.died" in harness.kinds("flood"))
    harness.close_log()
    lines = lines_of(harness.folder / "logs", "flood")
    assert sum(line.get("dropped_bytes", 0) for line in lines) > 3_000_000
    assert len([line for line in lines if line["stream"] == "stdout"]) <= 300


async def test_a_line_that_never_ends_is_cut_and_marked(harness: SupervisorHarness) -> None:
    source = (
        "import sys; sys.stdout.write('y' * 100_000 + '\\nshort\\n'); sys.stdout.flush(); import signal; signal.pause()"
    )
    written = LogReader(harness.folder / "logs", "long").follow_lines()
    async with harness.running() as supervisor:
        supervisor.start(harness.program("long", source))
        for _ in range(2):  # the first is written before the program has sent all of it
            await asyncio.to_thread(next, written)
    harness.close_log()
    long, short = lines_of(harness.folder / "logs", "long")
    assert long["truncated"]
    assert len(long["message"]) == 16 << 10
    assert short["message"] == "short"


def test_lines_of_all_programs_are_merged_by_time_and_cut_ones_are_skipped(tmp_path: Path) -> None:
    for program, moments in (("a", (1, 4)), ("b", (2, 3))):
        with log_file(tmp_path, program).open("w") as file:
            for moment in moments:
                file.write(json.dumps({"time": f"2026-01-01T00:00:0{moment}Z", "program": program}) + "\n")
            file.write('{"time": "cut off by a power')
    assert [line["time"][-2] for line in lines_of(tmp_path)] == ["1", "2", "3", "4"]
    assert [line["time"][-2] for line in LogReader(tmp_path).stored_lines("2026-01-01T00:00:03")] == ["3", "4"]
    assert list_logged_programs(tmp_path) == ["a", "b"]


def test_following_continues_after_a_rotation_without_loss_or_repeat(tmp_path: Path) -> None:
    limits = LogLimits(file_bytes=2000, files=5)

    def write(first: int, count: int) -> None:
        with LogWriter(tmp_path, limits, time.time) as log_writer:
            for number in range(first, first + count):
                log_writer.write("p", "stdout", str(number).encode())

    write(0, 5)
    reader = LogReader(tmp_path)
    stored = [line["message"] for line in reader.stored_lines()]
    following = reader.follow_lines()
    write(5, 10)
    seen = [next(following)["message"] for _ in range(10)]
    write(15, 12)  # into a new file
    seen += [next(following)["message"] for _ in range(12)]
    assert stored + seen == [str(number) for number in range(27)]


@pytest.mark.parametrize("text", ["", "ten minutes", "10", "5w", "2026-1-1", "1m; rm"])
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(FreeholdError) as caught:
        parse_since(text, 0)
    assert caught.value.code == "logs.bad-since"
