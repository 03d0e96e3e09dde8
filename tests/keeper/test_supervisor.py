"""Programs are started, probed, restarted and stopped in stages; a failing one does not affect the others."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.keeper.conftest import SHORT, SupervisorHarness

from freehold.errors import FreeholdError
from freehold.keeper.processes import identify_process, is_alive

FOREVER = "import signal; signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf')\nwhile True: signal.pause()"
CHILD = "import subprocess, sys; p = subprocess.Popen(['sleep', '1000']); print(p.pid); p.wait()"


async def nothing() -> None:
    """No final writes."""


async def test_a_killed_program_is_started_again(harness: SupervisorHarness) -> None:
    async with harness.running() as supervisor:
        supervised = supervisor.start(harness.program("door", FOREVER))
        await harness.until(lambda: supervised.state == "ready")
        first = supervised.status().pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await harness.until(lambda: supervised.state == "ready" and supervised.starts == 2)
        assert supervised.status().pid != first
        assert supervised.status().restarts == 1
    assert harness.kinds("door") == [
        "program.started",
        "program.ready",
        "program.died",
        "program.restarted",
        "program.started",
        "program.ready",
        "program.stopped",
    ]


async def test_a_killed_program_is_not_ready_from_that_moment_on(harness: SupervisorHarness) -> None:
    """Seen at every change: a program that is ready has a process."""
    seen: list[tuple[str, bool]] = []
    async with harness.running() as supervisor:
        supervised = supervisor.start(harness.program("door", FOREVER))

        def looked() -> bool:
            seen.append((supervised.state, supervised.run is not None))
            return supervised.state == "ready" and supervised.starts == 2

        await harness.until(lambda: supervised.state == "ready")
        pid = supervised.status().pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await harness.until(looked)
    assert ("ready", False) not in seen
    assert "stopping" in [state for state, _ in seen]


async def test_a_crash_loop_is_reported_and_the_other_programs_stay_up(harness: SupervisorHarness) -> None:
    async with harness.running() as supervisor:
        good = supervisor.start(harness.program("good", FOREVER))
        bad = supervisor.start(harness.program("bad", "raise SystemExit('no key')"))
        await harness.until(lambda: bad.state == "crash-looping")
        assert good.state == "ready"
        assert bad.last_error == "exited with 1"
        starts = bad.starts
        await harness.until(lambda: bad.starts > starts + 1)  # it is still being tried, slowly
        assert good.starts == 1
        assert supervisor.missing_requirements()[0].startswith("bad is ")
    assert harness.kinds("bad").count("program.crash_looping") == 1


async def test_a_program_that_cannot_start_is_explained_and_retried(harness: SupervisorHarness) -> None:
    program = replace(harness.program("ghost", ""), argv=["/nowhere/ghost"], cwd=Path("/nowhere"))
    async with harness.running() as supervisor:
        supervised = supervisor.start(program)
        await harness.until(lambda: supervised.starts > 2)
        assert "/nowhere" in str(supervised.last_error)


async def test_the_whole_process_group_ends_with_its_leader(harness: SupervisorHarness) -> None:
    async with harness.running():
        supervised, words = await harness.start_and_read(harness.program("family", CHILD))
        grandchild = identify_process(int(words))
        assert grandchild is not None
        pid = supervised.status().pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await harness.until(lambda: "program.died" in harness.kinds("family"))
        assert not is_alive(grandchild)


async def test_a_stop_reports_the_late_programs_of_each_stage_and_kills_them_last(harness: SupervisorHarness) -> None:
    async with harness.running() as supervisor:
        polite = supervisor.start(harness.program("polite", FOREVER))
        deaf, _ = await harness.start_and_read(harness.program("deaf", STUBBORN))
        order: list[str] = []

        async def final() -> None:
            order.append(f"final writes with polite {polite.state}, deaf {deaf.state}")

        reports = await supervisor.stop(final)
    assert [report.stage for report in reports] == ["refuse", "drain", "final_writes", "kill"]
    assert [report.stragglers for report in reports] == [(), ("deaf",), (), ()]
    assert order[0].startswith("final writes with polite stopped, deaf ")
    assert deaf.state == "stopped"
    stages = [data["stage"] for kind, data in harness.events if kind == "keeper.stop_stage_finished"]
    assert stages == ["refuse", "drain", "final_writes", "kill"]


async def test_a_second_stop_request_skips_the_deadlines(harness: SupervisorHarness) -> None:
    harness.tune(replace(SHORT, stop=replace(SHORT.stop, drain=3600)))
    async with harness.running() as supervisor:
        await harness.start_and_read(harness.program("deaf", STUBBORN))
        supervisor.stop_waiting()
        reports = await supervisor.stop(nothing)
    assert reports[1].stragglers == ("deaf",)
    assert reports[3].stragglers == ()


async def test_a_program_that_stops_answering_is_killed_and_started_again(harness: SupervisorHarness) -> None:
    answers = True

    async def probe() -> None:
        if not answers:
            raise FreeholdError("test.silent", "it does not answer")

    # Far enough apart that a busy machine does not pass over the first.
    settings = replace(SHORT, unhealthy_after=0.05, lost_after=3)
    harness.tune(settings)
    async with harness.running() as supervisor:
        supervised = supervisor.start(harness.program("mute", FOREVER, probe=probe))
        await harness.until(lambda: supervised.state == "ready")
        answers = False
        await harness.until(lambda: supervised.state == "unhealthy")
        await harness.until(lambda: "program.lost" in harness.kinds("mute"))
        answers = True
        await harness.until(lambda: supervised.state == "ready" and supervised.starts == 2)


async def test_a_requested_restart_has_no_wait_and_is_not_a_crash(harness: SupervisorHarness) -> None:
    async with harness.running() as supervisor:
        supervised = supervisor.start(harness.program("door", FOREVER))
        await harness.until(lambda: supervised.state == "ready")
        for life in range(2, 9):  # more than makes a crash loop
            await supervised.restart()
            await harness.until(lambda life=life: supervised.state == "ready" and supervised.starts == life)  # type: ignore[misc]
        assert supervised.status().restarts == 0
    assert "program.died" not in harness.kinds("door")


async def test_a_requested_restart_ends_the_wait_of_a_crash_loop(harness: SupervisorHarness, tmp_path: Path) -> None:
    flag = tmp_path / "mended"
    source = f"import os, signal, sys\nif not os.path.exists({str(flag)!r}): sys.exit(3)\nsignal.pause()"
    harness.tune(replace(SHORT, restart=replace(SHORT.restart, loop_wait=3600)))
    async with harness.running() as supervisor:
        supervised = supervisor.start(harness.program("broken", source))
        await harness.until(lambda: supervised.state == "crash-looping")
        flag.touch()
        await supervised.restart()
        await harness.until(lambda: supervised.state == "ready")


async def test_an_unknown_program_is_refused_with_the_known_names(harness: SupervisorHarness) -> None:
    async with harness.running() as supervisor:
        supervisor.start(harness.program("door", FOREVER))
        with pytest.raises(FreeholdError, match="no program 'dor'") as caught:
            supervisor.find("dor")
        assert "door" in caught.value.hint
