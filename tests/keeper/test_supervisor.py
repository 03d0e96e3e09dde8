"""Programs are started, watched, started again and stopped in stages; whatever one does, the others stay up."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.keeper.conftest import SHORT, Workshop

from freehold.errors import FreeholdError
from freehold.keeper.processes import identify, is_alive

FOREVER = "import signal; signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf')\nwhile True: signal.pause()"
CHILD = "import subprocess, sys; p = subprocess.Popen(['sleep', '1000']); print(p.pid); p.wait()"


async def nothing() -> None:
    """No final writes."""


async def test_a_killed_program_is_started_again(workshop: Workshop) -> None:
    async with workshop.running() as supervisor:
        kept = supervisor.start(workshop.program("door", FOREVER))
        await workshop.until(lambda: kept.state == "ready")
        first = kept.status().pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await workshop.until(lambda: kept.state == "ready" and kept.lives == 2)
        assert kept.status().pid != first
        assert kept.status().restarts == 1
    assert workshop.kinds("door") == [
        "program.started",
        "program.ready",
        "program.died",
        "program.restarted",
        "program.started",
        "program.ready",
        "program.stopped",
    ]


async def test_what_was_killed_is_not_ready_for_a_moment_longer(workshop: Workshop) -> None:
    """Seen at every change: a program that is ready has a process."""
    seen: list[tuple[str, bool]] = []
    async with workshop.running() as supervisor:
        kept = supervisor.start(workshop.program("door", FOREVER))

        def looked() -> bool:
            seen.append((kept.state, kept.run is not None))
            return kept.state == "ready" and kept.lives == 2

        await workshop.until(lambda: kept.state == "ready")
        pid = kept.status().pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await workshop.until(looked)
    assert ("ready", False) not in seen
    assert "stopping" in [state for state, _ in seen]


async def test_a_crash_loop_is_named_and_the_others_stay_up(workshop: Workshop) -> None:
    async with workshop.running() as supervisor:
        good = supervisor.start(workshop.program("good", FOREVER))
        bad = supervisor.start(workshop.program("bad", "raise SystemExit('no key')"))
        await workshop.until(lambda: bad.state == "crash-looping")
        assert good.state == "ready"
        assert bad.last_error == "exited with 1"
        lives = bad.lives
        await workshop.until(lambda: bad.lives > lives + 1)  # it is still being tried, slowly
        assert good.lives == 1
        assert supervisor.missing()[0].startswith("bad is ")
    assert workshop.kinds("bad").count("program.crash_looping") == 1


async def test_a_program_that_cannot_start_is_explained_and_retried(workshop: Workshop) -> None:
    program = replace(workshop.program("ghost", ""), argv=["/nowhere/ghost"], cwd=Path("/nowhere"))
    async with workshop.running() as supervisor:
        kept = supervisor.start(program)
        await workshop.until(lambda: kept.lives > 2)
        assert "/nowhere" in str(kept.last_error)


async def test_the_whole_process_group_goes_with_its_leader(workshop: Workshop) -> None:
    async with workshop.running():
        kept, words = await workshop.start_and_hear(workshop.program("family", CHILD))
        grandchild = identify(int(words))
        assert grandchild is not None
        pid = kept.status().pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await workshop.until(lambda: "program.died" in workshop.kinds("family"))
        assert not is_alive(grandchild)


async def test_a_stop_names_the_stragglers_of_each_stage_and_kills_them_last(workshop: Workshop) -> None:
    async with workshop.running() as supervisor:
        polite = supervisor.start(workshop.program("polite", FOREVER))
        deaf, _ = await workshop.start_and_hear(workshop.program("deaf", STUBBORN))
        order: list[str] = []

        async def final() -> None:
            order.append(f"final writes with polite {polite.state}, deaf {deaf.state}")

        reports = await supervisor.stop(final)
    assert [report.stage for report in reports] == ["refuse", "drain", "final_writes", "kill"]
    assert [report.stragglers for report in reports] == [(), ("deaf",), (), ()]
    assert order[0].startswith("final writes with polite stopped, deaf ")
    assert deaf.state == "stopped"
    stages = [data["stage"] for kind, data in workshop.events if kind == "keeper.stop_stage_finished"]
    assert stages == ["refuse", "drain", "final_writes", "kill"]


async def test_a_second_wish_to_stop_cuts_the_deadlines_short(workshop: Workshop) -> None:
    workshop.tune(replace(SHORT, stop=replace(SHORT.stop, drain=3600)))
    async with workshop.running() as supervisor:
        await workshop.start_and_hear(workshop.program("deaf", STUBBORN))
        supervisor.hurry()
        reports = await supervisor.stop(nothing)
    assert reports[1].stragglers == ("deaf",)
    assert reports[3].stragglers == ()


async def test_a_program_that_stops_answering_is_lost_and_replaced(workshop: Workshop) -> None:
    answers = True

    async def probe() -> None:
        if not answers:
            raise FreeholdError("test.silent", "it does not answer")

    settings = replace(SHORT, unhealthy_after=0.05, lost_after=0.3)
    workshop.tune(settings)
    async with workshop.running() as supervisor:
        kept = supervisor.start(workshop.program("mute", FOREVER, probe=probe))
        await workshop.until(lambda: kept.state == "ready")
        answers = False
        await workshop.until(lambda: kept.state == "unhealthy")
        await workshop.until(lambda: "program.lost" in workshop.kinds("mute"))
        answers = True
        await workshop.until(lambda: kept.state == "ready" and kept.lives == 2)


async def test_an_asked_restart_waits_for_no_backoff_and_is_no_crash(workshop: Workshop) -> None:
    async with workshop.running() as supervisor:
        kept = supervisor.start(workshop.program("door", FOREVER))
        await workshop.until(lambda: kept.state == "ready")
        for life in range(2, 9):  # more than makes a crash loop
            await kept.restart()
            await workshop.until(lambda life=life: kept.state == "ready" and kept.lives == life)  # type: ignore[misc]
        assert kept.status().restarts == 0
    assert "program.died" not in workshop.kinds("door")


async def test_an_asked_restart_ends_a_crash_loop_wait(workshop: Workshop, tmp_path: Path) -> None:
    flag = tmp_path / "mended"
    source = f"import os, signal, sys\nif not os.path.exists({str(flag)!r}): sys.exit(3)\nsignal.pause()"
    workshop.tune(replace(SHORT, restart=replace(SHORT.restart, loop_wait=3600)))
    async with workshop.running() as supervisor:
        kept = supervisor.start(workshop.program("broken", source))
        await workshop.until(lambda: kept.state == "crash-looping")
        flag.touch()
        await kept.restart()
        await workshop.until(lambda: kept.state == "ready")


async def test_an_unknown_program_is_refused_with_the_names_there_are(workshop: Workshop) -> None:
    async with workshop.running() as supervisor:
        supervisor.start(workshop.program("door", FOREVER))
        with pytest.raises(FreeholdError, match="no program 'dor'") as caught:
            supervisor.find("dor")
        assert "door" in caught.value.hint
