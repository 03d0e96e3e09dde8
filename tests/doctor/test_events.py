"""The doctor's events as lines of JSON, and the report that is collected from them."""

import json
import sys
from pathlib import Path

import pytest

from freehold.computer.contract.report import Isolation
from freehold.computer.escapes import Verdict
from freehold.doctor import (
    AttemptEnded,
    DoctorEnded,
    DoctorEvent,
    DoctorFailed,
    DoctorProcess,
    DoctorReport,
    DoctorStarted,
    ExceptionTried,
    IsolationFound,
    decode_event,
    doctor_command,
    encode_event,
)
from freehold.doctor.events import MissingWall
from freehold.home import Home

STARTED = DoctorStarted(2, {"kernel": "Linux"}, (MissingWall("net", "There is none", "Get one"),), ("E101 wrong",))
ISOLATION = IsolationFound(Isolation("bubblewrap", "0.8", "uid 7", ("mnt", "net"), {"memory": "watch"}))
REFUSED = Verdict("host-file", "reads a file of the host", "refused", "ENOENT")
ESCAPED = Verdict("network", "reaches the network", "escaped", "1.1.1.1")
TRIED = ExceptionTried("browser", ("Memory: 2GiB",), is_right=False, seen="It has ended")
EVENTS: list[DoctorEvent] = [STARTED, ISOLATION, AttemptEnded(REFUSED), TRIED, DoctorEnded(ok=False)]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_read_back_as_it_was_written(event: DoctorEvent) -> None:
    line = encode_event(event)
    assert "\n" not in line
    assert decode_event(line) == event


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "nonsense",
        '{"event": "rumour"}',
        '{"event": "ended"}',
        '{"event": "ended", "ok": 1}',
        '{"event": "attempt", "name": "x"}',
        json.dumps({"event": "ended", "ok": True, "more": 1}),
    ],
)
def test_any_other_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        decode_event(line)


def test_a_report_is_ok_only_without_missing_walls_manifest_errors_and_failures() -> None:
    sound = DoctorStarted(1, {}, (), ())
    assert DoctorReport(sound, attempts=(REFUSED,)).ok
    assert not DoctorReport(STARTED).ok
    assert not DoctorReport(DoctorStarted(1, {}, (), ("E101",)), attempts=(REFUSED,)).ok
    failed = DoctorReport(sound, attempts=(REFUSED, ESCAPED))
    assert (failed.ok, failed.failures) == (False, (ESCAPED,))


async def test_a_process_that_never_ends_its_examination_has_failed() -> None:
    source = f"print({encode_event(STARTED)!r}); raise SystemExit('no space')"
    seen: list[DoctorEvent] = []
    with pytest.raises(DoctorFailed, match="exit code 1: no space"):
        await DoctorProcess([sys.executable, "-c", source]).follow(seen.append)
    assert seen == [STARTED]


async def test_a_process_that_cannot_be_started_has_failed(tmp_path: Path) -> None:
    with pytest.raises(DoctorFailed, match="could not be started"):
        await DoctorProcess([str(tmp_path / "nothing")]).follow(lambda _: None)


def test_the_process_is_the_doctor_itself_and_not_the_command_line(tmp_path: Path) -> None:
    command = doctor_command(Home(root=tmp_path, run=tmp_path), True)
    assert command[1:3] == ["-m", "freehold.doctor"]
