"""A whole Freehold whose computer sleeps: with a service inside, a gateway that looks after it, and an owner who comes back."""

import json
import socket
import urllib.request
from pathlib import Path
from typing import Any

from tests.support.condition import wait_until
from tests.support.freehold import FreeholdHarness

from freehold.computer.library.use import use_socket
from freehold.keeper.calls import SleepStatus

MANIFEST = """
[computer]
sleep_after = "1s"

[computer.services.clock]
command = ["/bin/sh", "-c", "echo $$ >> started; exec sleep 1000"]
always = {always}
"""


def make_freehold(folder: Path, always: bool) -> FreeholdHarness:
    harness = FreeholdHarness(folder)
    harness.home.root.mkdir()
    harness.home.manifest.write_text(MANIFEST.format(always=str(always).lower()))
    return harness


def read_sleep(harness: FreeholdHarness) -> SleepStatus:
    sleep = harness.status().sleep
    assert sleep is not None
    return sleep


def read_timeline(harness: FreeholdHarness, *kinds: str) -> list[dict[str, Any]]:
    words = [word for kind in kinds for word in ("--kind", kind)]
    return [json.loads(line) for line in harness.run("timeline", *words, "--json", check=True).stdout.splitlines()]


def probe_without_waking(harness: FreeholdHarness) -> bool:
    """Whether the gateway is ready during one sleep. Something else may have woken the computer meanwhile: try again."""
    before = read_sleep(harness)
    with urllib.request.urlopen(f"{harness.url}/ready", timeout=60) as answer:
        assert answer.status == 200
    return before.asleep and read_sleep(harness) == before


def test_the_computer_sleeps_and_wakes_with_everything_that_runs_inside(tmp_path: Path) -> None:
    harness = make_freehold(tmp_path, always=False)
    started = harness.home.workspace / "started"
    with harness.keeper() as keeper:
        keeper.next("ready")
        wait_until(started.exists)
        wait_until(lambda: read_sleep(harness).asleep)
        assert harness.status().ready
        wait_until(lambda: probe_without_waking(harness))
        assert "Sleep" in harness.run("status").stdout
        told = json.loads(harness.run("status", "--json", check=True).stdout)["sleep"]["given_back"]
        (pid,) = started.read_text().split()
        ran = harness.run("run", "--", "cat", f"/proc/{pid}/comm", check=True)
        assert ran.stdout == "sleep\n"
        slept = read_sleep(harness)
        assert slept.times >= 1
        assert slept.seconds > 0
        assert harness.programs()["service-clock"].starts == 1
        assert harness.programs()["computer"].restarts == 0
        assert keeper.stop() == 0
    events = read_timeline(harness, "computer.slept", "computer.woke")
    assert {event["kind"] for event in events} == {"computer.slept", "computer.woke"}
    assert told in [event["data"]["given_back"] for event in events if event["kind"] == "computer.slept"]
    assert all(event["data"]["given_back"] >= 0 for event in events)


def test_a_keeper_stops_a_computer_that_sleeps(tmp_path: Path) -> None:
    harness = make_freehold(tmp_path, always=False)
    with harness.keeper() as keeper:
        keeper.next("ready")
        wait_until(lambda: read_sleep(harness).asleep)
        assert keeper.stop() == 0
        assert not list(harness.home.run.glob("computer-*"))


def test_a_service_that_is_always_needed_keeps_the_computer_awake(tmp_path: Path) -> None:
    """The witness has not used the computer for a long time. It is asked again and again, and the computer stays awake."""
    harness = make_freehold(tmp_path, always=True)
    with harness.keeper() as keeper:
        keeper.next("ready")
        wait_until((harness.home.workspace / "started").exists)
        wait_until(lambda: harness.programs()["service-clock"].state == "ready")
        before = read_sleep(harness).times
        with socket.socket(socket.AF_UNIX) as witness:
            witness.settimeout(60)
            witness.connect(str(use_socket(harness.home.computer_socket())))
            lines = witness.makefile("rwb", buffering=0)
            for _ in range(3):
                while (line := lines.readline()) != b"ask\n":
                    assert line, "the use socket was closed"
                lines.write(b"unused 1000000\n")
            lines.close()
        assert read_sleep(harness).times == before
        assert keeper.stop() == 0
