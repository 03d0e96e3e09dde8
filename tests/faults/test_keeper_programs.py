"""What the keeper keeps: a computer that falls silent, services inside it, children that outlive nothing."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from tests.keeper.running import KeeperProcess, Stead

from freehold.timeline import Timeline

SERVICE = """\
[computer.services.web]
command = ["/usr/bin/python3", "-u", "-c", "import os, signal; print('up', os.getuid()); signal.pause()"]
port = 5173
restart_on_undo = true
"""


def service(stead: Stead) -> dict[str, object]:
    programs = {one["name"]: one for one in stead.call("status")["programs"]}
    found: dict[str, object] = programs["service-web"]
    return found


def wait_for_event(stead: Stead, keeper: KeeperProcess, kind: str, program: str, count: int = 1) -> None:
    """Follows the timeline until the program has had that many of these events."""

    async def follow() -> None:
        seen = 0
        with Timeline(stead.home.timeline, readonly=True) as timeline:
            async with asyncio.timeout(60), contextlib.aclosing(timeline.follow(0, [kind])) as events:
                async for event in events:
                    seen += event.data["program"] == program
                    if seen >= count:
                        return

    asyncio.run(follow())


def test_a_computer_that_falls_silent_is_replaced_and_the_gateway_stays_up(tmp_path: Path) -> None:
    stead = Stead(tmp_path)
    with stead.keeper("--lost-after", "6") as keeper:
        keeper.next("ready")
        gateway, computer = keeper.pid_of("gateway"), keeper.pid_of("computer")
        os.kill(computer, signal.SIGSTOP)
        lost = keeper.next("lost")
        assert "computer is unhealthy: it has been silent" in lost["missing"][0]
        keeper.next("sealed")
        assert keeper.pid_of("computer") != computer
        assert keeper.pid_of("gateway") == gateway
        assert keeper.stop() == 0
    with Timeline(stead.home.timeline, readonly=True) as timeline:
        kinds = [event.kind for event in timeline.read() if event.data.get("program") == "computer"]
        assert kinds.index("program.unhealthy") < kinds.index("program.lost") < kinds.index("program.restarted")


def test_services_run_inside_are_logged_come_back_and_start_anew_after_an_undo(tmp_path: Path) -> None:
    stead = Stead(tmp_path)
    stead.home.root.mkdir(mode=0o700)
    stead.home.manifest.write_text(SERVICE)
    with stead.keeper() as keeper:
        keeper.next("ready")
        wait_for_event(stead, keeper, "program.ready", "service-web")
        assert service(stead)["state"] == "ready"

        # With the computer it dies and comes back.
        os.kill(keeper.pid_of("computer"), signal.SIGKILL)
        wait_for_event(stead, keeper, "program.ready", "service-web", 2)

        (stead.home.workspace / "file").write_text("new")
        stead.call("mark", {"phase": "after"})
        stead.call("history.undo", {"who": {"by": "owner"}})
        wait_for_event(stead, keeper, "program.restart_asked", "service-web")
        wait_for_event(stead, keeper, "program.ready", "service-web", 3)
        assert keeper.stop() == 0
    # Inside it is the agent's uid, never the keeper's.
    assert "up 1000" in stead.run("logs", "service-web").stdout


def test_a_broken_service_holds_back_no_readiness(tmp_path: Path) -> None:
    stead = Stead(tmp_path)
    stead.home.root.mkdir(mode=0o700)
    stead.home.manifest.write_text('[computer.services.web]\ncommand = ["/nowhere/at/all"]\nport = 5173\n')
    with stead.keeper("--loop-deaths", "3") as keeper:
        keeper.next("ready")
        wait_for_event(stead, keeper, "program.crash_looping", "service-web")
        status = stead.call("status")
        assert status["ready"]
        assert service(stead)["state"] == "crash-looping"
        assert keeper.stop() == 0


def test_children_die_with_the_keeper_even_when_its_mourner_was_killed_first(tmp_path: Path) -> None:
    stead = Stead(tmp_path)
    with stead.keeper() as keeper:
        keeper.next("ready")
        mourners = [pid for pid in keeper.family() if b"trap ''" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        assert len(mourners) == 1
        os.kill(mourners[0], signal.SIGKILL)
        keeper.kill()


def test_a_clock_that_jumps_changes_no_wait_and_breaks_no_record(tmp_path: Path) -> None:
    """The wall clock goes back and forth by years while programs die; in a process of its own, with such a clock."""
    script = """
import itertools, os, sys
from dataclasses import replace
import tests.keeper.driver as driver
jumps = itertools.cycle([0.0, 1e8, -1e8, 3e8, 5.0])
import time
driver.SETTINGS = replace(driver.SETTINGS, now=lambda: time.time() + next(jumps))
sys.argv = ["driver", *sys.argv[1:]]
driver.main()
"""
    stead = Stead(tmp_path)
    keeper = KeeperProcess(stead, (), argv=[sys.executable, "-c", script])
    try:
        keeper.next("ready")
        for victim in ("gateway", "computer"):
            os.kill(keeper.pid_of(victim), signal.SIGKILL)
            keeper.next("lost")
            keeper.next("sealed")
        status = stead.run("status")
        assert status.returncode == 0, status.stderr
        assert "-" not in status.stdout.split("keeper    ready")[1].split()[1], "no negative ages"
        assert stead.run("logs").returncode == 0
        assert keeper.stop() == 0
    finally:
        keeper.close()
    with Timeline(stead.home.timeline, readonly=True) as timeline:
        assert timeline.verify() == []
        seconds = [event.data["seconds"] for event in timeline.read(kinds=["boot.stage_finished"])]
        assert all(isinstance(each, float) and 0 <= each < 60 for each in seconds)


def test_nothing_is_left_in_the_run_folder_after_a_stop(tmp_path: Path) -> None:
    stead = Stead(tmp_path)
    with stead.keeper() as keeper:
        keeper.next("ready")
        assert keeper.stop() == 0
    assert list(stead.home.run.iterdir()) == []
