"""`freehold routines`."""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args

import click

from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option, require_home
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.routines.records import RoutineRun, RoutineState, RunMark
from freehold.routines.rules import TriggerKind
from freehold.routines.section import RoutineSection
from freehold.strict_json import EpochSeconds

if TYPE_CHECKING:
    from freehold.routines.records import Routine
    from freehold.routines.routine_store import RoutineStore
    from freehold.routines.run_store import RunStore

SHOWN_TIMES = 10
STRIP = 30
_MARKS = {
    "done": "✓", "failed": "✗", "parked": "?", "uncertain": "!", "skipped": "·", "cancelled": "-", "started": "▸",
    "due": "…",
}  # fmt: skip
name_argument = click.argument("name", metavar="NAME")


@dataclass(frozen=True)
class ListedRoutine:
    """`settings` are the keys that are not at their defaults, and `recent` its last runs, the newest first."""

    name: str
    source: str
    state: RoutineState
    reason: str | None
    trigger: TriggerKind
    next: EpochSeconds | None
    settings: Mapping[str, Any]
    recent: tuple[RunMark, ...]


@dataclass(frozen=True)
class ShownRoutine(ListedRoutine):
    """`times` are the next ones at which it begins."""

    times: tuple[datetime, ...]


@dataclass(frozen=True)
class MadeWebhook:
    url: str
    secret: str


@contextmanager
def _open(home: Home) -> "Iterator[RunStore]":
    """The routines of a home, with those of its manifest. Freehold need not run."""
    from freehold.manifest import require_manifest
    from freehold.routines.clock import WallClock
    from freehold.routines.routine_store import RoutineStore
    from freehold.routines.run_store import RunStore
    from freehold.routines.section import RoutinesSection
    from freehold.timeline import Timeline

    require_home(home)
    manifest = require_manifest(home.manifest, os.environ).manifest
    with Timeline(home.timeline) as timeline:
        routines = RoutineStore(timeline, WallClock())
        routines.prepare()
        routines.adopt_manifest(manifest.section(RoutinesSection).named)
        yield RunStore(routines)


@click.group(invoke_without_command=True)
@home_option
@json_option(JsonOutput(ListedRoutine, "list"))
@click.pass_context
def command(ctx: click.Context, home: Home, as_json: bool) -> None:
    """Work that begins without you: at times, or when something happens.

    Routines stand in freehold.toml as [routines.NAME], or are added here, in the control center, or by an agent when
    you have approved its text. They begin while Freehold runs.

    \b
    Examples:
      freehold routines
      freehold routines add morning --cron "0 7 * * MON-FRI" --prompt "Report what changed since yesterday."
      freehold routines add tidy --files "inbox/*.pdf" --prompt "File what has arrived."
      freehold routines run morning
      freehold routines log morning
    """
    if ctx.invoked_subcommand is None:
        _list(home, as_json)


@command.command("list")
@home_option
@json_option(JsonOutput(ListedRoutine, "list"))
def list_(home: Home, as_json: bool) -> None:
    """List the routines, with their next time and their last runs.

    \b
    Example:
      freehold routines list --json
    """
    _list(home, as_json)


def _list(home: Home, as_json: bool) -> None:
    with _open(home) as runs:
        found = _read_all(runs.routines)
        strips = {one.name: runs.list_marks(one.name, STRIP) for one in found}
    if as_json:
        echo_json([_describe_routine(one, strips[one.name]) for one in found])
        return
    for one in found:
        click.echo(_line(one, strips[one.name]))
    if not found:
        click.echo('There are no routines. Add one: freehold routines add NAME --every 1h --prompt "PROMPT"')


def _read_all(routines: "RoutineStore") -> "list[Routine]":
    found: list[Routine] = []
    while page := routines.list_routines(found[-1].name if found else ""):
        found += page
    return found


@command.command()
@name_argument
@home_option
@json_option(JsonOutput(ShownRoutine))
def show(name: str, home: Home, as_json: bool) -> None:
    """Show a routine: its keys, its next ten times, and its last runs.

    \b
    Example:
      freehold routines show morning
    """
    from freehold.routines.routine_store import plan_times
    from freehold.routines.spec_text import show_spec

    with _open(home) as runs:
        routine, recent = runs.routines.get(name), runs.list_marks(name, STRIP)
        last = next(iter(runs.list_runs(name, limit=1)), None)
        times = plan_times(routine.spec, runs.routines.clock, SHOWN_TIMES)
    if as_json:
        echo_json(ShownRoutine(**vars(_describe_routine(routine, recent)), times=tuple(times)))
        return
    click.echo(_line(routine, recent))
    if routine.reason is not None:
        click.echo(_visible(routine.reason))
    click.echo(f"\n{_visible(show_spec(routine.spec), lines=True)}\n")
    _show_times(times)
    if last is not None and last.result:
        click.echo(f"\nThe last result:\n{_visible(last.result, lines=True)}")


def spec_options(function: Callable[..., None]) -> Callable[..., None]:
    """An option for each key of a routine."""
    for name, field in reversed(RoutineSection.model_fields.items()):
        given: dict[str, Any] = {"default": None, "help": field.description, "metavar": "VALUE"}
        if field.annotation is bool:
            given = {"is_flag": True, "default": None, "help": field.description}
        elif choices := [one for one in get_args(field.annotation) if isinstance(one, str)]:
            given["metavar"] = f"[{'|'.join(choices)}]"
        elif name == "files":
            given = {"multiple": True, "help": field.description, "metavar": "PATTERN"}
        option = f"--{name.replace('_', '-')}"
        function = click.option(option if name != "enabled" else "--enabled/--disabled", name, **given)(function)
    return function


def read_options(given: dict[str, Any]) -> RoutineSection:
    """The routine that the options describe. Raises `routine.bad-value`."""
    from freehold.routines.spec_text import validate_spec

    values: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or value == ():
            continue
        annotation = RoutineSection.model_fields[name].annotation
        kinds = (annotation, *get_args(annotation))
        try:
            if float in kinds:
                values[name] = float(value)
            else:
                values[name] = int(value) if int in kinds and value.isdigit() else value
        except ValueError:
            raise FreeholdError("routine.bad-value", f"{name}: {value!r} is not a number") from None
    return validate_spec(values)


@command.command()
@name_argument
@click.option("--replace", is_flag=True, help="Change the routine of this name, if there is one.")
@click.option("--dry-run", is_flag=True, help="Only show when it would begin.")
@spec_options
@home_option
def add(name: str, replace: bool, dry_run: bool, home: Home, **given: Any) -> None:
    """Add a routine. It has one trigger and one piece of work; everything else has a default.

    \b
    Examples:
      freehold routines add morning --cron "0 7 * * MON-FRI" --zone Europe/Berlin --prompt "Report." --budget 0.5
      freehold routines add pulse --every 30m --checklist HEARTBEAT.md --hours 08:00-22:00
      freehold routines add backup --cron "0 3 * * *" --command "make backup" --retries 2 --dry-run
    """
    from freehold.routines.routine_store import plan_times
    from freehold.routines.rules import check_routine

    spec = read_options(given)
    check_routine(name, spec)
    with _open(home) as runs:
        if not dry_run:
            runs.routines.add(name, spec, who="owner", replace=replace)
            click.echo(f"Added {name}.")
        _show_times(plan_times(spec, runs.routines.clock, SHOWN_TIMES))
    if spec.webhook and not dry_run:
        click.echo(f"Make the secret of its requests: freehold routines webhook {name}")


@command.command()
@name_argument
@click.option("--text", metavar="TEXT", help="What the run is told, as data.")
@home_option
@json_option(JsonOutput(RoutineRun))
def run(name: str, text: str | None, home: Home, as_json: bool) -> None:
    """Begin a run now, also of a routine that is paused. If Freehold does not run, it begins when it does.

    \b
    Example:
      freehold routines run morning
    """
    from freehold.routines.run_store import MANUAL

    with _open(home) as runs:
        data = {} if text is None else {"text": text}
        made = runs.trigger(name, MANUAL + secrets.token_hex(8), data, who="owner")
    assert made is not None  # its cause is new
    if as_json:
        echo_json(made)
    else:
        click.echo(f"The run {made.id} of {name} is due.")


@command.command()
@name_argument
@home_option
def pause(name: str, home: Home) -> None:
    """Let a routine begin no more by itself, until it is resumed.

    \b
    Example:
      freehold routines pause morning
    """
    with _open(home) as runs:
        runs.routines.pause(name, who="owner")
    click.echo(f"Paused {name}.")


@command.command()
@name_argument
@home_option
def resume(name: str, home: Home) -> None:
    """Let a paused routine begin again, from its next time on.

    \b
    Example:
      freehold routines resume morning
    """
    with _open(home) as runs:
        following = runs.routines.resume(name, who="owner").next
    click.echo(f"Resumed {name}." if following is None else f"Resumed {name}. It begins {_moment(following)}.")


@command.command()
@name_argument
@home_option
def remove(name: str, home: Home) -> None:
    """Remove a routine. One of freehold.toml is removed there.

    \b
    Example:
      freehold routines remove morning
    """
    from freehold.egress.vault import Vault
    from freehold.routines.webhook import forget_secrets

    with _open(home) as runs:
        runs.routines.check_removable(name)
        forget_secrets(Vault(home.vault), (name,))  # first, so that a failure leaves a routine to be removed again
        runs.routines.remove(name, who="owner")
    click.echo(f"Removed {name}.")


@command.command()
@click.argument("name", metavar="NAME", required=False)
@click.option("--count", "-n", type=click.IntRange(1, 500), default=30, show_default=True, help="How many at most.")
@home_option
@json_option(JsonOutput(RoutineRun, "list"))
def log(name: str | None, count: int, home: Home, as_json: bool) -> None:
    """Show the last runs, the newest first.

    \b
    Example:
      freehold routines log morning -n 5
    """
    with _open(home) as runs:
        found = runs.list_runs(name, limit=count)
    if as_json:
        echo_json(found)
        return
    for one in found:
        cost = "" if one.cost is None else f"  {one.cost:.4f}"
        words = one.error or ("nothing to report" if one.quiet else (one.result or "").strip().partition("\n")[0])
        text = f"{one.id}  {_moment(one.due)}  {one.routine}  {one.state}{cost}  {words}"
        click.echo(_visible(text.rstrip())[:300])
    if not found:
        click.echo("There are no runs yet.")


@command.command()
@name_argument
@home_option
@json_option(JsonOutput(MadeWebhook))
def webhook(name: str, home: Home, as_json: bool) -> None:
    """Make and show a new secret for the signed requests of a routine. The one before no longer works.

    \b
    Example:
      freehold routines webhook deploy
    """
    from freehold.egress.vault import Vault
    from freehold.identity.sign_ins import control_center_url
    from freehold.manifest import require_manifest
    from freehold.routines.webhook import make_secret, secret_name

    with _open(home) as runs:
        if not runs.routines.get(name).spec.webhook:
            raise FreeholdError("routine.conflict", f"{name} is not triggered by a webhook")
    gateway = require_manifest(home.manifest, os.environ).manifest.gateway
    secret = make_secret()
    Vault(home.vault).set(secret_name(name), secret)
    address = f"{control_center_url(gateway.port, gateway.public_url)}/v1/hooks/{name}"
    if as_json:
        echo_json(MadeWebhook(address, secret))
    else:
        click.echo(f"POST {address}\nsigned as Standard Webhooks describes it, with the secret\n{secret}")


def _show_times(times: list[datetime]) -> None:
    form = "%a %Y-%m-%d %H:%M:%S %Z" if any(moment.second for moment in times) else "%a %Y-%m-%d %H:%M %Z"
    for moment in times:
        click.echo(moment.strftime(form))


def _line(routine: "Routine", recent: "list[RunMark]") -> str:
    following = "-" if routine.next is None else _moment(routine.next)
    strip = "".join(_MARKS[run.state] for run in recent)
    return _visible(f"{routine.name:<20} {routine.trigger:<8} {routine.state:<7} {following:<17} {strip}").rstrip()


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"


def _visible(text: str, *, lines: bool = False) -> str:
    from freehold.agents.visible_text import make_visible

    return make_visible(text, lines=lines)


def _describe_routine(routine: "Routine", recent: "list[RunMark]") -> ListedRoutine:
    return ListedRoutine(
        routine.name,
        routine.source,
        routine.state,
        routine.reason,
        routine.trigger,
        routine.next,
        routine.spec.model_dump(mode="json", exclude_defaults=True),
        tuple(recent),
    )
