"""A process with routines whose work writes one line. The test kills it at any point and starts it again.

Arguments: the home, and the file for the lines.
"""

import asyncio
import os
import sys
from pathlib import Path

from tests.agents.session_harness import SessionHarness

from freehold.computer import Computer
from freehold.routines.records import Routine, RoutineRun
from freehold.routines.run_changes import RunEnd
from freehold.routines.service import RoutineService


class LineWork:
    """Writes the run's id, and ends. After a restart nobody can know whether it was written."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def begin(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        os.write(self._file, f"{run.id}\n".encode())
        await asyncio.sleep(0.001)
        return RunEnd("done")

    async def recover(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        return RunEnd("uncertain", error="It is not known whether the line was written")

    async def settle(self, run: RoutineRun) -> RunEnd | None:
        return None

    async def measure_cost(self, run: RoutineRun) -> float | None:
        return None

    async def stop(self, run: RoutineRun, reason: str) -> None:
        return


async def main(home: Path, lines: Path) -> None:
    computer: Computer = None  # type: ignore[assignment] # no work of this test needs one
    sessions = SessionHarness(computer, home, 600.0)
    async with asyncio.TaskGroup() as group:
        await sessions.start(group)
        service = RoutineService(sessions.sessions, {})
        service._works["command"] = LineWork(lines)
        await service.run()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
