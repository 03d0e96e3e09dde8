"""The keeper as a process, as `freehold up -d` and a service unit start it: `python -m freehold.keeper --home FOLDER`."""

import argparse
import json
import os
import sys
from typing import Any

from freehold.errors import FreeholdError
from freehold.home import find_home
from freehold.installed_version import begin_start


class StartReport:
    """Reports events to the process that started the keeper, until that closes the pipe."""

    def __init__(self, pipe: int | None) -> None:
        self._pipe = pipe
        if pipe is not None:
            os.set_inheritable(pipe, False)

    def __call__(self, event: str, data: dict[str, Any]) -> None:
        if self._pipe is None:
            return
        try:
            os.write(self._pipe, json.dumps({"event": event, **data}).encode() + b"\n")
        except OSError:
            self._pipe = None


def main() -> None:
    start = begin_start("freehold.keeper", sys.argv[1:])
    parser = argparse.ArgumentParser(prog="python -m freehold.keeper")
    parser.add_argument("--home", default=None)
    parser.add_argument(
        "--report", type=int, default=None, metavar="FD", help="write events to this file descriptor, as JSON lines"
    )
    options = parser.parse_args()

    report = StartReport(options.report)
    from freehold.keeper.runner import run_keeper

    try:
        run_keeper(find_home(options.home), announce=start.watch(report))
    except FreeholdError as error:
        report("failed", dict(error.body()))
        print(error, file=sys.stderr)  # noqa: T201
        sys.exit(1)


if __name__ == "__main__":
    main()
