"""After any kill Freehold starts again, and no process outlives its keeper."""

import os
import signal
from pathlib import Path

from tests.support.condition import wait_until
from tests.support.freehold import FreeholdHarness

from freehold.keeper.seal import read_seal
from freehold.timeline import Timeline

ROUNDS = 4
KILLS_PER_ROUND = 4


def count_deaths(harness: FreeholdHarness) -> int:
    with Timeline(harness.home.timeline, readonly=True) as timeline:
        return len(timeline.read(kinds=["program.died"], limit=1000))


def test_twenty_kills_of_every_child_and_of_the_keeper_end_healthy_with_a_timeline_that_verifies(
    tmp_path: Path,
) -> None:
    harness = FreeholdHarness(tmp_path)
    killed = 0
    for round_number in range(ROUNDS):
        with harness.keeper() as keeper:
            keeper.next("ready")
            for number in range(KILLS_PER_ROUND):
                victim = ("computer", "gateway", "computer", "computer")[number]
                os.kill(keeper.pid_of(victim), signal.SIGKILL)
                killed += 1
                keeper.next("lost")
                keeper.next("sealed")
            assert read_seal(harness.home) is not None
            # The keeper writes events to the timeline a moment later, and what it has not written dies with it.
            deaths = killed - round_number
            wait_until(lambda deaths=deaths: count_deaths(harness) == deaths)  # type: ignore[misc]
            keeper.kill()
            killed += 1
            assert read_seal(harness.home) is None, "a seal whose keeper is dead is void"
    assert killed == 20
    with harness.keeper() as keeper:
        keeper.next("ready")
        status = harness.status()
        assert status.ready
        assert {program.state for program in status.programs} == {"ready"}
        assert keeper.stop() == 0
    with Timeline(harness.home.timeline, readonly=True) as timeline:
        assert timeline.verify() == []
        assert count_deaths(harness) == ROUNDS * KILLS_PER_ROUND
        assert len(timeline.read(kinds=["boot.started"], limit=1000)) == ROUNDS + 1


def test_a_second_keeper_is_refused_with_the_holder_of_the_home(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    with harness.keeper() as first:
        first.next("ready")
        with harness.keeper() as second:
            failed = second.next("failed")
            assert failed["code"] == "keeper.already-running"
            assert f"pid {first.process.pid}" in failed["message"]
            assert second.process.wait() == 1
        assert harness.status().ready, "the first is unharmed"
        assert first.stop() == 0
