"""What a routine must meet besides the types of its keys: one trigger, one piece of work, values that can be read."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from zoneinfo import ZoneInfo

from freehold.errors import FreeholdError
from freehold.routines.schedule import SingleTime, read_hours, read_schedule, read_zone
from freehold.routines.section import MAX_PATTERN, NAME_PATTERN, RoutineSection

TriggerKind = Literal["cron", "every", "at", "files", "webhook", "event", "after", "message"]
WorkKind = Literal["prompt", "command", "checklist", "workflow"]
TRIGGERS: tuple[TriggerKind, ...] = ("cron", "every", "at", "files", "webhook", "event", "after", "message")
WORKS: tuple[WorkKind, ...] = ("prompt", "command", "checklist", "workflow")
TIME_TRIGGERS: tuple[TriggerKind, ...] = ("cron", "every", "at")

LATEST = 32_503_680_000.0
"""The begin of the year 3000. Far beyond it a time cannot be shown in every zone."""
_AFTER = re.compile(r"session|session:[A-Za-z0-9]{1,64}|routine:[a-z0-9][a-z0-9_-]{0,62}")
_EVENT = re.compile(r"[A-Za-z0-9_.-]+\*?")


@dataclass(frozen=True)
class RuleProblem:
    """What is wrong with one key of a routine. `is_shape`: it has not one trigger and one piece of work."""

    key: str
    message: str
    hint: str
    is_shape: bool = False


def list_triggers(spec: RoutineSection) -> tuple[TriggerKind, ...]:
    """Those that are set."""
    return tuple(one for one in TRIGGERS if getattr(spec, one) not in (None, False, ()))


def list_works(spec: RoutineSection) -> tuple[WorkKind, ...]:
    """Those that are set. A checklist may have a prompt beside it."""
    found = tuple(one for one in WORKS if getattr(spec, one) is not None)
    return ("checklist",) if found == ("prompt", "checklist") else found


def trigger_of(spec: RoutineSection) -> TriggerKind:
    return list_triggers(spec)[0]


def work_of(spec: RoutineSection) -> WorkKind:
    return list_works(spec)[0]


def find_problems(spec: RoutineSection) -> Iterator[RuleProblem]:
    """Everything that is wrong with a routine."""
    yield from _check_shape(spec)
    yield from _check_texts(spec)
    yield from _check_times(spec)


def check_routine(name: str, spec: RoutineSection) -> None:
    """Raises `routine.bad-name` or `routine.bad-value`."""
    if re.fullmatch(NAME_PATTERN, name) is None:
        raise FreeholdError(
            "routine.bad-name",
            f"{name[:80]!r} cannot be the name of a routine",
            hint="Use up to 63 small letters, digits, - and _, such as morning-report",
        )
    for problem in find_problems(spec):
        raise FreeholdError("routine.bad-value", f"{name}: {problem.message}", hint=problem.hint)


def _check_shape(spec: RoutineSection) -> Iterator[RuleProblem]:
    triggers, works = list_triggers(spec), list_works(spec)
    if len(triggers) != 1:
        found = " and ".join(triggers) or "none"
        yield RuleProblem(
            triggers[0] if triggers else "cron",
            f"A routine has one trigger; this one has {found}",
            f"Set one of {', '.join(TRIGGERS)}",
            is_shape=True,
        )
    if len(works) != 1:
        found = " and ".join(works) or "none"
        yield RuleProblem(
            works[0] if works else "prompt",
            f"A routine has one piece of work; this one has {found}",
            f"Set one of {', '.join(WORKS)}; a checklist may have a prompt beside it",
            is_shape=True,
        )


def _check_texts(spec: RoutineSection) -> Iterator[RuleProblem]:
    if spec.prompt is not None and not spec.prompt.strip():
        yield RuleProblem("prompt", "The prompt is empty", 'prompt = "Look at the logs of today."')
    if spec.prompt is not None and spec.prompt.lstrip().startswith("!"):
        yield RuleProblem("prompt", "A prompt that begins with ! is a shell command", 'Use command = "…" instead')
    if spec.command is not None and (not spec.command.strip() or "\0" in spec.command):
        yield RuleProblem("command", "The command is empty", 'command = "make test"')
    if spec.command is not None and "{{" in spec.command:
        yield RuleProblem(
            "command",
            "A command cannot contain {{: what a trigger tells could become a part of the command",
            "Read it from standard input: it is there as JSON",
        )
    if spec.checklist is not None and not _is_inside(spec.checklist):
        yield RuleProblem(
            "checklist", f"{spec.checklist!r} is not a file of the workspace", 'checklist = "HEARTBEAT.md"'
        )
    if spec.workflow is not None and not (_is_inside(spec.workflow) and spec.workflow.endswith(".py")):
        yield RuleProblem(
            "workflow", f"{spec.workflow[:80]!r} is not a Python file of the workspace", 'workflow = "flows/nightly.py"'
        )
    if spec.sha256 is not None and spec.workflow is None:
        yield RuleProblem("sha256", "sha256 belongs to a workflow", 'workflow = "flows/nightly.py"')
    for pattern in spec.files:
        if not pattern or len(pattern) > MAX_PATTERN or not _is_inside(pattern):
            yield RuleProblem(
                "files", f"{pattern[:80]!r} is not a pattern below the workspace", 'files = ["inbox/*.pdf"]'
            )
    if spec.event is not None and _EVENT.fullmatch(spec.event) is None:
        yield RuleProblem("event", f"{spec.event!r} is not the type of an event", 'event = "org.example.order.*"')
    if spec.after is not None and _AFTER.fullmatch(spec.after) is None:
        yield RuleProblem("after", f"{spec.after!r} is neither a routine nor a session", 'after = "routine:fetch"')
    if spec.session not in ("new", "same") and re.fullmatch("[0-9a-f]{16}", spec.session) is None:
        yield RuleProblem("session", f"{spec.session!r} is not the id of a session", 'session = "new", or "same"')


def _check_times(spec: RoutineSection) -> Iterator[RuleProblem]:
    zone = ZoneInfo("UTC")
    if spec.zone is not None:
        try:
            zone = read_zone(spec.zone)
        except ValueError as error:
            yield RuleProblem("zone", str(error), 'zone = "Europe/Berlin"')
    try:
        read_hours(spec.hours, zone)
    except ValueError as error:
        yield RuleProblem("hours", str(error), 'hours = "08:00-22:00"')
    try:
        found = read_schedule(spec, zone, 0.0)
    except ValueError as error:
        key = "cron" if spec.cron is not None else "at"
        yield RuleProblem(key, str(error), 'cron = "0 7 * * MON-FRI"' if key == "cron" else 'at = "2027-01-01T09:00"')
    else:
        if isinstance(found, SingleTime) and not 0.0 <= found.moment < LATEST:
            yield RuleProblem("at", f"{spec.at!r} is not a time from 1970 to 2999", 'at = "2027-01-01T09:00"')


def _is_inside(path: str) -> bool:
    return not path.startswith("/") and ".." not in path.split("/") and path.isprintable() and bool(path.strip("/"))
