"""The doctor as a program: `python -m freehold.doctor --home FOLDER [--quick]`, started by the gateway.

Prints one line of JSON for each event. Exits 0 when all is well, 1 when not, and 143 when SIGTERM ended it.
"""

import argparse
import signal
import sys

from freehold.doctor.events import DoctorEvent, encode_event
from freehold.doctor.examination import run_doctor_until_terminated
from freehold.home import find_home


def print_event(event: DoctorEvent) -> None:
    print(encode_event(event), flush=True)  # noqa: T201 - read by the gateway


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m freehold.doctor")
    parser.add_argument("--home", required=True)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    report = run_doctor_until_terminated(find_home(options.home), quick=options.quick, on_event=print_event)
    if report is None:
        sys.exit(128 + signal.SIGTERM)
    sys.exit(0 if report.ok else 1)


if __name__ == "__main__":
    main()
