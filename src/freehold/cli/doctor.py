"""`freehold doctor`."""

import asyncio
import json
import os
import platform
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from freehold.cli._options import home_option, json_option
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.computer.backend import Isolation
    from freehold.computer.computer import Computer
    from freehold.computer.escapes import Verdict
    from freehold.computer.isolation import WallProblem

Tell = Callable[["Isolation | Verdict"], None]

BEGUN = ("facts", "missing_walls", "manifest_errors")
MARKS = {"refused": ("ok", "green"), "escaped": ("ESCAPED", "red"), "unclear": ("UNCLEAR", "red")}


@click.command()
@click.option("--quick", is_flag=True, help="Leave out the attempts to use up memory, disk and processes (some 20 s).")
@click.option("--lines", is_flag=True, help="One line of JSON for each thing that is found, as it is found.")
@home_option
@json_option
def command(home: Home, as_json: bool, quick: bool, lines: bool) -> None:
    """Try to break out of a computer on this machine, and tell what was seen.

    Starts throw-away computers and really tries each escape of the list: what is reported is what happened, not what
    is configured. Exits 1 when something got out, when a wall cannot be built here, or when the manifest has errors.

    \b
    Example:
      freehold doctor
      freehold doctor --quick --json
      freehold doctor --lines | jq -r 'select(.event == "attempt") | .name'
    """
    from freehold.computer.isolation import isolation_problems

    facts = _facts()
    problems = isolation_problems()
    manifest = _manifest_errors(home)
    verdicts: list[Verdict] = []
    isolation: Isolation | None = None
    tell: Tell = _tell_lines if lines else _tell_nothing if as_json else _tell_people
    if lines:
        begun = _as_json(False, facts, problems, manifest, None, [])
        _print_line("begun", total=0 if problems else _count(quick), **{name: begun[name] for name in BEGUN})
    elif not as_json:
        _print_facts(facts, problems, manifest)
    if not problems:
        try:
            isolation, verdicts = asyncio.run(_examine(quick, tell))
        except asyncio.CancelledError:
            sys.exit(128 + signal.SIGTERM)
    well = not problems and not manifest and all(verdict.outcome == "refused" for verdict in verdicts)
    if lines:
        _print_line("ended", ok=well)
    elif as_json:
        click.echo(json.dumps(_as_json(well, facts, problems, manifest, isolation, verdicts), indent=2))
    elif not problems:
        _print_end(verdicts)
    if not well:
        sys.exit(1)


def _tell_nothing(_found: "Isolation | Verdict") -> None:
    """All of it is told at the end."""


def _tell_people(found: "Isolation | Verdict") -> None:
    from freehold.computer.escapes import Verdict

    if isinstance(found, Verdict):
        _print_verdict(found)
    else:
        _print_isolation(found)


def _tell_lines(found: "Isolation | Verdict") -> None:
    from freehold.computer.escapes import Verdict

    if isinstance(found, Verdict):
        _print_line("attempt", **asdict(found))
    else:
        _print_line("isolation", **_isolation(found))


def _print_line(event: str, **told: object) -> None:
    click.echo(json.dumps({"event": event, **told}))


def _count(quick: bool) -> int:
    from freehold.computer.escapes import BOMBS, ESCAPES

    return len(ESCAPES) + (0 if quick else len(BOMBS))


def _facts() -> dict[str, str]:
    from freehold.computer.cgroups import find_parents

    groups = {f"{name} v{parent.version}" for name, parent in find_parents().items()}
    return {
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "user": "root" if os.geteuid() == 0 else f"uid {os.geteuid()}",
        "control groups": ", ".join(sorted(groups)) or "none that this user may write",
        "security modules": _read("/sys/kernel/security/lsm") or "unknown",
        "sessions apart": _sessions_apart(),
        "apparmor restricts user namespaces": _read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") or "no",
        "user namespaces": _read("/proc/sys/user/max_user_namespaces") or "unknown",
        "core pattern": _read("/proc/sys/kernel/core_pattern") or "unknown",
    }


def _sessions_apart() -> str:
    from freehold.computer.isolation import keeps_sessions_apart, landlock_version

    if keeps_sessions_apart():
        return f"yes, by Landlock {landlock_version()}"
    return "no: an agent can read another's tokens; start Linux 5.19 or later with landlock among its security modules"


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _manifest_errors(home: Home) -> list[str]:
    from freehold.manifest import load_manifest

    if not home.manifest.exists():
        return []
    return [
        f"{problem.code} {problem.message}"
        for problem in load_manifest(home.manifest, os.environ, home=home.root).errors
    ]


async def _examine(quick: bool, tell: Tell) -> "tuple[Isolation, list[Verdict]]":
    from freehold.computer.bubblewrap import Bubblewrap
    from freehold.computer.computer import Computer

    examining = asyncio.current_task()
    assert examining is not None
    # Whoever ends us wants the computers ended, too.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, examining.cancel)
    verdicts: list[Verdict] = []
    async with Computer.start(backend=Bubblewrap()) as computer:
        if computer.machine is None:
            raise RuntimeError("a computer that was started has a machine")
        isolation = computer.machine.isolation
        tell(isolation)
        async for verdict in _attempts(computer, quick):
            verdicts.append(verdict)
            tell(verdict)
    return isolation, verdicts


async def _attempts(computer: "Computer", quick: bool) -> "AsyncIterator[Verdict]":
    from freehold.computer.escapes import BOMBS, ESCAPES, laid_bait, try_bomb, try_escape

    with laid_bait() as bait:
        for escape in ESCAPES:
            yield await try_escape(escape, bait, computer)
        for bomb in () if quick else BOMBS:
            yield await try_bomb(bomb, bait, computer)


def _as_json(
    well: bool,
    facts: dict[str, str],
    problems: "list[WallProblem]",
    manifest: list[str],
    isolation: "Isolation | None",
    verdicts: "list[Verdict]",
) -> dict[str, object]:
    return {
        "ok": well,
        "facts": facts,
        "missing_walls": [asdict(problem) for problem in problems],
        "manifest_errors": manifest,
        "isolation": None if isolation is None else _isolation(isolation),
        "attempts": [asdict(verdict) for verdict in verdicts],
    }


def _isolation(isolation: "Isolation") -> dict[str, object]:
    return {**asdict(isolation), "limits": dict(isolation.limits)}


def _print_facts(facts: dict[str, str], problems: "list[WallProblem]", manifest: list[str]) -> None:
    for name, value in facts.items():
        click.echo(f"{name:36}{value}")
    for error in manifest:
        click.echo(click.style("manifest  ", fg="red") + error)
    for problem in problems:
        click.echo(click.style(f"\nno {problem.wall}: ", fg="red") + problem.message + f"\n  hint: {problem.hint}")


def _print_isolation(isolation: "Isolation") -> None:
    click.echo(f"{'backend':36}{isolation.backend} {isolation.version}, uid {isolation.uid} on this machine")
    click.echo(f"{'walls':36}{', '.join(isolation.walls)}")
    limits = ", ".join(f"{name} by {mechanism}" for name, mechanism in isolation.limits.items())
    click.echo(f"{'limits':36}{limits}\n")


def _print_verdict(verdict: "Verdict") -> None:
    mark, colour = MARKS[verdict.outcome]
    seen = verdict.seen if verdict.outcome != "refused" or len(verdict.seen) < 90 else verdict.seen[:87] + "…"
    click.echo(click.style(f"{mark:9}", fg=colour) + f"{verdict.name:26}{seen}")


def _print_end(verdicts: "list[Verdict]") -> None:
    failed = [verdict for verdict in verdicts if verdict.outcome != "refused"]
    if not failed:
        click.echo(click.style(f"\nAll {len(verdicts)} attempts were refused.", fg="green"))
        return
    click.echo(click.style(f"\n{len(failed)} of {len(verdicts)} attempts were not refused:", fg="red"))
    for verdict in failed:
        click.echo(f"  {verdict.name}: an agent {verdict.claim}. {verdict.seen}")
