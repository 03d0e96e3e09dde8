"""A keeper with short times, as a process that the fault tests start and kill."""

import argparse
import itertools
import os
import signal
import sys
import time
from dataclasses import replace
from typing import Any

from freehold.errors import FreeholdError
from freehold.home import find_home
from freehold.keeper.__main__ import StartReport
from freehold.keeper.computer_program import ComputerProgram
from freehold.keeper.host_program import HostProgram
from freehold.keeper.runner import run_keeper
from freehold.keeper.settings import KeeperSettings, RestartPolicy, StopDeadlines

SETTINGS = KeeperSettings(
    # A crash loop by design: the twenty kills of the faults test are none.
    restart=RestartPolicy(first=0.02, limit=0.1, loop_deaths=1000),
    stop=StopDeadlines(refuse=2, drain=5, final_writes=5, kill=5),
    probe_interval=0.1,
    ready_deadline=60,
)


def break_programs() -> None:
    async def refuse_start(*_: object) -> Any:
        raise FreeholdError("test.broken", "This cannot be started")

    HostProgram.start = refuse_start  # type: ignore[method-assign, assignment]
    ComputerProgram.start = refuse_start  # type: ignore[method-assign, assignment]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", required=True)
    parser.add_argument("--report", type=int, required=True)
    parser.add_argument("--term-at", default=None, help="send ourselves SIGTERM when this stage begins")
    parser.add_argument("--loop-deaths", type=int, default=1000)
    parser.add_argument("--lost-after", type=float, default=30.0)
    parser.add_argument("--broken", action="store_true", help="neither gateway nor computer can be started")
    parser.add_argument("--clock-jumps", action="store_true", help="the wall clock jumps by years, back and forth")
    options = parser.parse_args()
    if options.broken:
        break_programs()
    report = StartReport(options.report)
    jumps = itertools.cycle([0.0, 1e8, -1e8, 3e8, 5.0] if options.clock_jumps else [0.0])

    def announce(event: str, data: dict[str, Any]) -> None:
        report(event, data)
        if event == "stage_began" and data["stage"] == options.term_at:
            os.kill(os.getpid(), signal.SIGTERM)

    settings = replace(
        SETTINGS,
        restart=replace(SETTINGS.restart, loop_deaths=options.loop_deaths),
        unhealthy_after=options.lost_after / 1.5,
        lost_after=options.lost_after,
        now=lambda: time.time() + next(jumps),
    )
    try:
        run_keeper(find_home(options.home), settings, announce)
    except FreeholdError as error:
        report("failed", dict(error.body()))
        sys.exit(1)


if __name__ == "__main__":
    main()
