"""`freehold doctor`."""

import signal
import sys
from typing import TYPE_CHECKING, Any, TypedDict

import click

from freehold.cli._home_files import read_manifest
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.computer.registry import BACKENDS
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.computer.contract.report import Isolation
    from freehold.computer.escapes import Verdict
    from freehold.doctor import DoctorEvent, DoctorReport, DoctorStarted, ExceptionTried

MARKS = {"refused": ("ok", "green"), "escaped": ("ESCAPED", "red"), "unclear": ("UNCLEAR", "red")}


class ShownReport(TypedDict):
    """`attempts` has every escape attempt with its outcome. `isolation` is null when no computer could be started.

    `exceptions` has what exceptions of the manifest allow, each with what was seen when it was used.
    """

    ok: bool
    facts: dict[str, str]
    missing_walls: list[dict[str, str]]
    manifest_errors: list[str]
    isolation: dict[str, Any] | None
    attempts: list[dict[str, Any]]
    exceptions: list[dict[str, Any]]


@click.command()
@click.option("--quick", is_flag=True, help="Skip the attempts to use up memory, disk and processes (about 20 s).")
@click.option(
    "--backend",
    type=click.Choice(sorted(BACKENDS)),
    help="The way to isolate that is tested; else that of the manifest. SANDBOX_HOST is the address of a container engine.",
)
@click.option(
    "--public",
    metavar="URL",
    is_flag=False,
    flag_value="",
    help="Look at a deployed Freehold from outside instead; without a URL, at gateway.public_url.",
)
@click.option("--fleet", is_flag=True, help="Try every node of the fleet instead of this machine.")
@click.option("--lines", is_flag=True, help="Print one line of JSON for each result, as soon as it is known.")
@home_option
@json_option(
    JsonOutput(ShownReport),
    JsonOutput("freehold.doctor.public_site:PublicFinding", "list", when="--public"),
    JsonOutput("freehold.fleet.node_examination:NodeExamination", "list", when="--fleet"),
)
def command(
    home: Home, as_json: bool, quick: bool, lines: bool, backend: str | None, public: str | None, fleet: bool
) -> None:
    """Test the isolation with real escape attempts.

    Starts temporary computers and runs every escape attempt in them. The report shows what happened, not what is
    configured. It also shows the mounts of the manifest, each with its state. Exits 1 when an attempt was not refused, when isolation is not possible on this machine, or when the
    manifest has errors.

    With --public it starts nothing. It looks at a deployed Freehold as a stranger would: certificate, redirects, headers,
    ports that must be closed, and that nothing answers without the owner. Run it on another machine.

    \b
    Examples:
      freehold doctor
      freehold doctor --quick --json
      freehold doctor --backend docker
      freehold doctor --public https://agent.example.com
      freehold doctor --fleet --quick
      freehold doctor --lines | jq -r 'select(.event == "attempt") | .name'
    """
    if public is not None:
        _examine_public(home, public, as_json)
        return
    if fleet:
        _examine_fleet(home, quick, as_json)
        return
    from freehold.doctor import run_doctor_until_terminated

    on_event = _print_event_line if lines else _print_nothing if as_json else print_event
    report = run_doctor_until_terminated(home, quick=quick, on_event=on_event, backend=backend)
    if report is None:
        sys.exit(128 + signal.SIGTERM)
    if as_json and not lines:
        echo_json(report.as_json(), indent=2)
    elif not lines and not report.started.missing_walls:
        _print_summary(report)
    if not report.ok:
        sys.exit(1)


def _examine_public(home: Home, url: str, as_json: bool) -> None:
    from freehold.doctor.public_site import examine_site, find_site

    url = url or read_manifest(home).gateway.public_url or ""
    if not url:
        raise FreeholdError(
            "doctor.bad-address",
            "gateway.public_url is not set",
            hint="freehold doctor --public https://agent.example.com",
        )
    findings = []
    for one in examine_site(find_site(url)):
        findings.append(one)
        if not as_json:
            mark = click.style("ok       ", fg="green") if one.is_right else click.style("WRONG    ", fg="red")
            click.echo(f"{mark}{one.name:20}{one.found}" + ("" if one.is_right else f"\n{'':29}{one.hint}"))
    if as_json:
        echo_json(findings, indent=2)
    if not all(one.is_right for one in findings):
        sys.exit(1)


def _examine_fleet(home: Home, quick: bool, as_json: bool) -> None:
    from freehold.fleet.node_examination import examine_nodes

    found = []
    for node in examine_nodes(home, quick=quick):
        found.append(node)
        if not as_json:
            click.echo(f"{node.node}: {node.trouble or f'{len(node.attempts)} attempts'}")
            for verdict in node.attempts:
                _print_verdict(verdict)
    if as_json:
        echo_json(found, indent=2)
    if not all(node.ok for node in found):
        sys.exit(1)


def _print_nothing(_event: "DoctorEvent") -> None:
    """The whole report is printed at the end."""


def _print_event_line(event: "DoctorEvent") -> None:
    from freehold.doctor import encode_event

    click.echo(encode_event(event))


def print_event(event: "DoctorEvent") -> None:
    from freehold.doctor import AttemptEnded, DoctorStarted, ExceptionTried, IsolationFound

    match event:
        case DoctorStarted():
            _print_checks(event)
        case IsolationFound():
            _print_isolation(event.isolation)
        case AttemptEnded():
            _print_verdict(event.verdict)
        case ExceptionTried():
            _print_exception(event)
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


def _print_exception(tried: "ExceptionTried") -> None:
    mark, colour = ("works", "green") if tried.is_right else ("FAILED", "red")
    click.echo(click.style(f"{mark:9}", fg=colour) + f"exception {tried.name:16}{tried.seen}")
    for words in tried.adds:
        click.echo(f"{'':9}{words}")


def _print_summary(report: "DoctorReport") -> None:
    total = len(report.attempts)
    if not report.failures:
        click.echo(click.style(f"\nAll {total} attempts were refused.", fg="green"))
        return
    click.echo(click.style(f"\n{len(report.failures)} of {total} attempts were not refused:", fg="red"))
    for verdict in report.failures:
        click.echo(f"  {verdict.name}: an agent {verdict.claim}. {verdict.seen}")
