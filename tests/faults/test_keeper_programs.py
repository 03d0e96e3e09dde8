"""The keeper's programs: a computer that stops answering, services inside it, and children that must not outlive it."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

from tests.support.condition import DEADLINE
from tests.support.freehold import FreeholdHarness, KeeperProcess
from tests.support.processes import read_command

from freehold.history.calls import MarkFiles, RequestAuthor, UndoChanges
from freehold.keeper.calls import ProgramStatus
from freehold.timeline import Timeline

SERVICE = """\
[computer.services.web]
command = ["/usr/bin/python3", "-u", "-c", "import os, signal; print('up', os.getuid()); signal.pause()"]
port = 5173
restart_on_undo = true
"""


def service(harness: FreeholdHarness) -> ProgramStatus:
    return harness.programs()["service-web"]


def wait_for_event(harness: FreeholdHarness, keeper: KeeperProcess, kind: str, program: str, count: int = 1) -> None:
    """Follows the timeline until the program has had that many of these events."""

    async def follow() -> None:
        seen = 0
        with Timeline(harness.home.timeline, readonly=True) as timeline:
            async with asyncio.timeout(DEADLINE), contextlib.aclosing(timeline.follow(0, [kind])) as events:
                async for event in events:
                    seen += event.data["program"] == program
                    if seen >= count:
                        return

    asyncio.run(follow())


def test_a_computer_that_stops_answering_is_replaced_and_the_gateway_stays_up(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    with harness.keeper("--lost-after", "6") as keeper:
        keeper.next("ready")
        gateway, computer = keeper.pid_of("gateway"), keeper.pid_of("computer")
        os.kill(computer, signal.SIGSTOP)
        lost = keeper.next("lost")
        assert "computer is unhealthy: it has not answered" in lost["missing"][0]
        keeper.next("sealed")
        assert keeper.pid_of("computer") != computer
        assert keeper.pid_of("gateway") == gateway
        assert keeper.stop() == 0
    with Timeline(harness.home.timeline, readonly=True) as timeline:
        kinds = [event.kind for event in timeline.read() if event.data.get("program") == "computer"]
        assert kinds.index("program.unhealthy") < kinds.index("program.lost") < kinds.index("program.restarted")


def test_services_run_inside_are_logged_and_are_restarted_after_a_crash_and_an_undo(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    harness.home.root.mkdir(mode=0o700)
    harness.home.manifest.write_text(SERVICE)
    with harness.keeper() as keeper:
        keeper.next("ready")
        wait_for_event(harness, keeper, "program.ready", "service-web")
        assert service(harness).state == "ready"

        # With the computer it dies and comes back.
        os.kill(keeper.pid_of("computer"), signal.SIGKILL)
        wait_for_event(harness, keeper, "program.ready", "service-web", 2)

        (harness.home.workspace / "file").write_text("new")
        harness.call(MarkFiles("after"))
        harness.call(UndoChanges(who=RequestAuthor(by="owner")))
        wait_for_event(harness, keeper, "program.restart_asked", "service-web")
        wait_for_event(harness, keeper, "program.ready", "service-web", 3)
        assert keeper.stop() == 0
    # Inside it is the agent's uid, never the keeper's.
    assert "up 1000" in harness.run("logs", "service-web").stdout


def test_a_broken_service_does_not_prevent_readiness(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    harness.home.root.mkdir(mode=0o700)
    harness.home.manifest.write_text('[computer.services.web]\ncommand = ["/nowhere/at/all"]\nport = 5173\n')
    with harness.keeper("--loop-deaths", "3") as keeper:
        keeper.next("ready")
        wait_for_event(harness, keeper, "program.crash_looping", "service-web")
        status = harness.status()
        assert status.ready
        assert service(harness).state == "crash-looping"
        assert keeper.stop() == 0


def test_children_end_with_the_keeper_even_when_its_watcher_was_killed_first(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    with harness.keeper() as keeper:
        keeper.next("ready")
        watchers = [pid for pid in keeper.family() if "trap ''" in read_command(pid)]
        assert len(watchers) == 1
        os.kill(watchers[0], signal.SIGKILL)
        keeper.kill()


def test_a_clock_that_jumps_changes_no_wait_and_no_recorded_duration(tmp_path: Path) -> None:
    """The wall clock goes back and forth by years while programs die."""
    harness = FreeholdHarness(tmp_path)
    with harness.keeper("--clock-jumps") as keeper:
        keeper.next("ready")
        for victim in ("gateway", "computer"):
            os.kill(keeper.pid_of(victim), signal.SIGKILL)
            keeper.next("lost")
            keeper.next("sealed")
        status = harness.run("status")
        assert status.returncode == 0, status.stderr
        assert "-" not in status.stdout.split("keeper    ready")[1].split()[1], "no negative ages"
        assert harness.run("logs").returncode == 0
        assert keeper.stop() == 0
    with Timeline(harness.home.timeline, readonly=True) as timeline:
        assert timeline.verify() == []
        seconds = [event.data["seconds"] for event in timeline.read(kinds=["boot.stage_finished"])]
        assert all(isinstance(each, float) and 0 <= each < 60 for each in seconds)


def test_nothing_is_left_in_the_run_folder_after_a_stop(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    with harness.keeper() as keeper:
        keeper.next("ready")
        assert keeper.stop() == 0
    assert list(harness.home.run.iterdir()) == []
