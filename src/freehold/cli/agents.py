"""`freehold agents`."""

import json
import os
import sys
from typing import TYPE_CHECKING

import click

from freehold.cli._options import home_option, json_option
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.agents.registry import Entry
    from freehold.agents.trial import Trial
    from freehold.manifest import Manifest


@click.group(invoke_without_command=True)
@home_option
@json_option
@click.pass_context
def command(ctx: click.Context, home: Home, as_json: bool) -> None:
    """Show which agents can work here, or add, remove and try one.

    \b
    Examples:
      freehold agents
      freehold agents add claude
      freehold agents test claude
      freehold agents remove claude
    """
    ctx.obj = home
    if ctx.invoked_subcommand is not None:
        return
    from freehold.agents.installing import installed, problem_with
    from freehold.agents.registry import known_agents

    manifest = _manifest(home)
    rows = []
    for name, entry in known_agents(manifest).items():
        receipt = installed(home, name)
        rows.append(
            {
                "name": name,
                "title": entry.title,
                "installed": entry.package is None or receipt is not None,
                "package": entry.package,
                "asks": entry.asks,
                "default": name == manifest.agents.default,
                "problem": problem_with(home, entry),
            }
        )
    if as_json:
        click.echo(json.dumps(rows))
        return
    for row in rows:
        mark = "*" if row["default"] else " "
        state = "not installed" if not row["installed"] else row["problem"] or "ready"
        words = f"{mark} {row['name']:<12} {row['title']:<24} {state}"
        click.secho(words + ("" if row["asks"] else "  (does not ask before it acts)"), dim=not row["installed"])
    click.echo("\n* answers when no other is chosen; freehold agents add NAME installs one")


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@home_option
@click.pass_context
def add(ctx: click.Context, names: tuple[str, ...], home: Home) -> None:
    """Install agents: once, pinned and hashed, into this Freehold. What was fetched before an interruption is kept.

    \b
    Example:
      freehold agents add claude opencode
    """
    from freehold.agents.installing import install_agent
    from freehold.agents.registry import find_agent
    from freehold.home import ensure_private_folder

    home = _home(ctx, home)
    manifest = _manifest(home)
    entries = [find_agent(manifest, name) for name in names]
    ensure_private_folder(home.root)
    for entry in entries:
        receipt = install_agent(home, entry, Bar(entry.name))
        Bar.clear()
        click.echo(f"{entry.name} is installed ({receipt.package})")
        if not entry.asks:
            click.secho(f"mind that {entry.title} does not ask before it acts", fg="yellow", err=True)


@command.command()
@click.argument("name")
@home_option
@click.pass_context
def remove(ctx: click.Context, name: str, home: Home) -> None:
    """Remove an agent's programs. Its sessions stay.

    \b
    Example:
      freehold agents remove claude
    """
    from freehold.agents.installing import remove_agent

    remove_agent(_home(ctx, home), name)
    click.echo(f"{name} is removed")


@command.command()
@click.argument("name")
@home_option
@json_option
@click.pass_context
def test(ctx: click.Context, name: str, home: Home, as_json: bool) -> None:
    """Try an agent in a computer of its own, with a scripted model: what it can do, how fast, with how much memory.

    Needs no key and nothing to be running.

    \b
    Example:
      freehold agents test claude
    """
    import asyncio

    from freehold.agents.installing import problem_with
    from freehold.agents.registry import find_agent
    from freehold.errors import FreeholdError

    home = _home(ctx, home)
    entry = find_agent(_manifest(home), name)
    problem = problem_with(home, entry)
    if problem is not None:
        raise FreeholdError("agent.not-installed", f"{entry.title}: {problem}", hint=f"freehold agents add {name}")
    trial = asyncio.run(_try(home, entry))
    if as_json:
        click.echo(json.dumps(trial.as_json()))
        return
    able = ", ".join(word for word, yes in trial.capabilities.items() if yes) or "nothing beyond the basics"
    click.echo(f"{entry.title} {trial.version} works")
    click.echo(
        f"  starts in {trial.start:.2f} s, opens a session in {trial.session:.2f} s, a turn took {trial.turn:.2f} s"
    )
    click.echo(f"  takes {trial.memory / 2**20:.0f} MB; offers {able}")


async def _try(home: Home, entry: "Entry") -> "Trial":
    from freehold.agents.registry import INSIDE
    from freehold.agents.trial import try_agent
    from freehold.computer import Computer
    from freehold.computer.spec import Mount

    mounts = [Mount(home.agents, INSIDE)] if home.agents.is_dir() else []
    async with Computer.start(mounts=mounts) as computer:
        return await try_agent(computer, entry)


class Bar:
    """One line that is written over and over; nothing where nobody watches."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._said = ""

    def __call__(self, what: str, done: int, total: int) -> None:
        words = f"{self._name}: {what}" + (f" {done} of {total}" if total else "")
        if words == self._said:
            return
        self._said = words
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[K{words}", nl=False, err=True)

    @staticmethod
    def clear() -> None:
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", nl=False, err=True)


def _home(ctx: click.Context, home: Home) -> Home:
    """`--home` may stand before or after the verb."""
    outer = ctx.obj
    given = ctx.get_parameter_source("home") is not click.core.ParameterSource.DEFAULT
    return home if given or not isinstance(outer, Home) else outer


def _manifest(home: Home) -> "Manifest":
    from freehold.manifest import load_manifest

    return load_manifest(home.manifest, os.environ, home=home.root).manifest
