"""Forks processes that run a routine with a prompt and are killed at a chosen transaction, also of the session.

Each line of the input names the home, the number of the transaction, and `before` or `after` its commit; 0 kills nothing.
The answer is the exit status of the process, which ends when no run is left. The agent is a double: it writes the key of
each prompt that it gets into the file `prompts` of the home.
"""

import asyncio
import os
from pathlib import Path

from tests.agents import session_harness
from tests.agents.session_harness import SessionHarness
from tests.routines.conftest import SetClock
from tests.routines.workflow_crash_driver import TIMEOUT, DyingTimeline, serve
from tests.support.condition import until

from freehold.agents.sessions.runner import SessionRunner
from freehold.computer import Computer
from freehold.routines.records import UNFINISHED
from freehold.routines.service import RoutineService

NOW = "2026-06-01 13:00:30"


async def main(home: Path) -> None:
    prompts = os.open(home / "prompts", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def answer(runner: SessionRunner) -> None:
        runner.ready.set()
        while (turn := await runner._find_next_turn()) is not None:
            await runner._log.begin_turn(turn, None)
            os.write(prompts, f"{turn.key}\n".encode())
            await runner._log.end_turn(turn.turn, "end_turn", None, None)

    SessionRunner._run_agent = answer  # type: ignore[method-assign,assignment]
    session_harness.Timeline = DyingTimeline  # type: ignore[attr-defined]
    computer: Computer = None  # type: ignore[assignment] # the double needs none
    sessions = SessionHarness(computer, home, 600.0)

    async with asyncio.TaskGroup() as group:
        await sessions.start(group)
        service = RoutineService(sessions.sessions, {}, clock=SetClock(NOW))
        running = group.create_task(service.run())
        await service.ready.wait()

        def is_over() -> bool:
            runs = service.runs.list_runs("r")
            return bool(runs) and not any(run.state in UNFINISHED for run in runs)

        await until(is_over, TIMEOUT)
        running.cancel()
        await sessions.stop()


if __name__ == "__main__":
    serve(main)
