"""`freehold doctor` line by line, and interrupted. tests/security shows that the walls hold."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def doctor(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    words = ["doctor", "--quick", "--lines", "--home", str(tmp_path / "home")]
    process = subprocess.Popen(
        [sys.executable, "-m", "freehold.cli.main", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
        process.kill()


def test_each_attempt_is_printed_as_it_ends(doctor: "subprocess.Popen[str]") -> None:
    assert doctor.stdout is not None
    lines = [json.loads(line) for line in doctor.stdout]
    begun, isolation, *attempts, ended = lines
    assert (begun["event"], isolation["event"], ended["event"]) == ("begun", "isolation", "ended")
    assert begun["total"] == len(attempts) > 20
    assert begun["missing_walls"] == []
    assert {attempt["event"] for attempt in attempts} == {"attempt"}
    assert [attempt["name"] for attempt in attempts if attempt["outcome"] != "refused"] == []
    assert ended == {"event": "ended", "ok": True}
    assert doctor.wait() == 0


def test_an_interrupted_doctor_stops_its_computers(doctor: "subprocess.Popen[str]") -> None:
    """No process is left behind: the suite checks that."""
    assert doctor.stdout is not None
    while json.loads(doctor.stdout.readline())["event"] != "attempt":
        pass
    doctor.send_signal(signal.SIGTERM)
    said = [json.loads(line)["event"] for line in doctor.stdout]
    assert doctor.wait(30) == 128 + signal.SIGTERM
    assert "ended" not in said
