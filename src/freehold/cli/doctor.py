"""`freehold doctor`."""

import json
import signal
import sys
from typing import TYPE_CHECKING

import click

from freehold.cli._options import home_option, json_option
from freehold.computer.registry import BACKENDS
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.computer.contract.report import Isolation
    from freehold.computer.escapes import Verdict
    from freehold.doctor import DoctorEvent, DoctorReport, DoctorStarted

MARKS = {"refused": ("ok", "green"), "escaped": ("ESCAPED", "red"), "unclear": ("UNCLEAR", "red")}


@click.command()
@click.option("--quick", is_flag=True, help="Skip the attempts to use up memory, disk and processes (about 20 s).")
@click.option(
    "--backend",
    type=click.Choice(sorted(BACKENDS)),
    help="The way to isolate that is tested; else that of the manifest. SANDBOX_HOST is the address of a container engine.",
)
@click.option("--lines", is_flag=True, help="Print one line of JSON for each result, as soon as it is known.")
@home_option
@json_option
def command(home: Home, as_json: bool, quick: bool, lines: bool, backend: str | None) -> None:
    """Test the isolation with real escape attempts.

    Starts temporary computers and runs every escape attempt in them. The report shows what happened, not what is
    configured. It also shows the mounts of the manifest, each with its state. Exits 1 when an attempt was not refused, when isolation is not possible on this machine, or when the
    manifest has errors.

    \b
    Examples:
      freehold doctor
      freehold doctor --quick --json
      freehold doctor --backend docker
      freehold doctor --lines | jq -r 'select(.event == "attempt") | .name'
    """
    from freehold.doctor import run_doctor_until_terminated

    on_event = _print_event_line if lines else _print_nothing if as_json else print_event
    report = run_doctor_until_terminated(home, quick=quick, on_event=on_event, backend=backend)
    if report is None:
        sys.exit(128 + signal.SIGTERM)
    if as_json and not lines:
        click.echo(json.dumps(report.as_json(), indent=2))
    elif not lines and not report.started.missing_walls:
        _print_summary(report)
    if not report.ok:
        sys.exit(1)


def _print_nothing(_event: "DoctorEvent") -> None:
    """The whole report is printed at the end."""


def _print_event_line(event: "DoctorEvent") -> None:
    from freehold.doctor import encode_event

    click.echo(encode_event(event))


def print_event(event: "DoctorEvent") -> None:
    from freehold.doctor import AttemptEnded, DoctorStarted, IsolationFound

    match event:
        case DoctorStarted():
            _print_checks(event)
        case IsolationFound():
            _print_isolation(event.isolation)
        case AttemptEnded():
            _print_verdict(event.verdict)
        case _:
            pass


def _print_checks(started: "DoctorStarted") -> None:
    for name, value in started.facts.items():
        click.echo(f"{name:36}{value}")
    for error in started.manifest_errors:
        click.echo(click.style("manifest  ", fg="red") + error)
    for mount in started.mounts:
        state = click.style(mount.state, fg="green" if mount.state == "ready" else "red")
        words = f": {mount.words}" if mount.words else ""
        click.echo(f"{'mount ' + mount.target:36}{mount.kind} {mount.source}".rstrip() + f", {state}{words}")
    for missing in started.missing_walls:
        click.echo(click.style(f"\nno {missing.wall}: ", fg="red") + missing.message + f"\n  hint: {missing.hint}")


def _print_isolation(isolation: "Isolation") -> None:
    click.echo(f"{'backend':36}{isolation.backend} {isolation.version}, {isolation.runs_as} on this machine")
    click.echo(f"{'walls':36}{', '.join(isolation.walls)}")
    limits = ", ".join(f"{name} by {mechanism}" for name, mechanism in isolation.limits.items())
    click.echo(f"{'limits':36}{limits}\n")


def _print_verdict(verdict: "Verdict") -> None:
    mark, colour = MARKS[verdict.outcome]
    seen = verdict.seen if verdict.outcome != "refused" or len(verdict.seen) < 90 else verdict.seen[:87] + "…"
    click.echo(click.style(f"{mark:9}", fg=colour) + f"{verdict.name:26}{seen}")


def _print_summary(report: "DoctorReport") -> None:
    total = len(report.attempts)
    if not report.failures:
        click.echo(click.style(f"\nAll {total} attempts were refused.", fg="green"))
        return
    click.echo(click.style(f"\n{len(report.failures)} of {total} attempts were not refused:", fg="red"))
    for verdict in report.failures:
        click.echo(f"  {verdict.name}: an agent {verdict.claim}. {verdict.seen}")
