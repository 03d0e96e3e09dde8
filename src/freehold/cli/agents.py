"""`freehold agents`."""

import json
import os
import sys
from typing import TYPE_CHECKING

import click

from freehold.cli._options import home_option, json_option
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.agents.catalogue.definition import AgentDefinition
    from freehold.agents.catalogue.trial import AgentTrial
    from freehold.manifest import Manifest

_ASKS = {
    True: "",
    False: "  (not known to ask before it acts)",
    None: "  (its first session shows whether it asks before it acts)",
}


@click.group(invoke_without_command=True)
@home_option
@json_option
@click.pass_context
def command(ctx: click.Context, home: Home, as_json: bool) -> None:
    """List the agents, or add, remove and test one.

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
    from freehold.agents.catalogue.installation import find_problem, read_receipt
    from freehold.agents.catalogue.registry import is_known_to_ask, known_agents

    manifest = _manifest(home)
    rows = []
    for name, entry in known_agents(manifest).items():
        receipt = read_receipt(home, name)
        rows.append(
            {
                "name": name,
                "title": entry.title,
                "installed": entry.package is None or receipt is not None,
                "package": entry.package,
                "asks": is_known_to_ask(entry),
                "default": name == manifest.agents.default,
                "problem": find_problem(home, entry),
            }
        )
    if as_json:
        click.echo(json.dumps(rows))
        return
    for row in rows:
        mark = "*" if row["default"] else " "
        state = "not installed" if not row["installed"] else row["problem"] or "ready"
        words = f"{mark} {row['name']:<12} {row['title']:<24} {state}"
        click.secho(words + _ASKS[row["asks"] if isinstance(row["asks"], bool) else None], dim=not row["installed"])
    click.echo("\n* is the default agent. To install an agent: freehold agents add NAME")


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@home_option
@click.pass_context
def add(ctx: click.Context, names: tuple[str, ...], home: Home) -> None:
    """Install agents.

    Packages are pinned and checked by hash. An interrupted download continues where it stopped.

    \b
    Example:
      freehold agents add claude opencode
    """
    from freehold.agents.catalogue.installation import install_agent
    from freehold.agents.catalogue.registry import find_agent, is_known_to_ask
    from freehold.home import ensure_private_folder

    home = _home(ctx, home)
    manifest = _manifest(home)
    entries = [find_agent(manifest, name) for name in names]
    ensure_private_folder(home.root)
    for entry in entries:
        receipt = install_agent(home, entry, ProgressLine(entry.name))
        ProgressLine.clear()
        click.echo(f"Installed {entry.name} ({receipt.package})")
        if is_known_to_ask(entry) is False:
            click.secho(f"warning: {entry.title} is not known to ask before it acts", fg="yellow", err=True)


@command.command()
@click.argument("name")
@home_option
@click.pass_context
def remove(ctx: click.Context, name: str, home: Home) -> None:
    """Uninstall an agent. Its sessions are kept.

    \b
    Example:
      freehold agents remove claude
    """
    from freehold.agents.catalogue.installation import remove_agent

    remove_agent(_home(ctx, home), name)
    click.echo(f"Removed {name}")


@command.command()
@click.argument("name")
@home_option
@json_option
@click.pass_context
def test(ctx: click.Context, name: str, home: Home, as_json: bool) -> None:
    """Test an agent in a temporary computer with a scripted model.

    Shows its capabilities, speed and memory use. Needs no API key. Freehold does not need to run.

    \b
    Example:
      freehold agents test claude
    """
    import asyncio

    from freehold.agents.catalogue.installation import find_problem
    from freehold.agents.catalogue.registry import find_agent
    from freehold.errors import FreeholdError

    home = _home(ctx, home)
    manifest = _manifest(home)
    entry = find_agent(manifest, name)
    problem = find_problem(home, entry)
    if problem is not None:
        raise FreeholdError("agent.not-installed", f"{entry.title}: {problem}", hint=f"freehold agents add {name}")
    trial = asyncio.run(_try_agent(home, entry, manifest))
    if as_json:
        click.echo(json.dumps(trial.as_json()))
        return
    able = ", ".join(word for word, yes in trial.capabilities.items() if yes) or "none beyond the basics"
    click.echo(f"{entry.title} {trial.version} works")
    click.echo(
        f"  starts in {trial.start:.2f} s, opens a session in {trial.session:.2f} s, a turn took {trial.turn:.2f} s"
    )
    click.echo(f"  uses {trial.memory / 2**20:.0f} MB; capabilities: {able}")
    mode = f"in its mode {trial.mode}" if trial.mode else "and has no modes"
    if trial.asks:
        click.echo(f"  asks before it acts, {mode}; model API: {trial.kind}")
    else:
        click.secho(f"  is not known to ask before it acts, {mode}; model API: {trial.kind}", fg="yellow")


async def _try_agent(home: Home, entry: "AgentDefinition", manifest: "Manifest") -> "AgentTrial":
    from freehold.agents.catalogue.trial import try_agent
    from freehold.computer import Computer
    from freehold.computer.contract.conventions import AGENTS_PATH
    from freehold.computer.contract.spec import Mount

    mounts = [Mount(home.agents, AGENTS_PATH)] if home.agents.is_dir() else []
    async with Computer.start(mounts=mounts) as computer:
        return await try_agent(computer, entry, manifest)


class ProgressLine:
    """One line of progress that is overwritten. Prints nothing when stderr is not a terminal."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._printed = ""

    def __call__(self, what: str, done: int, total: int) -> None:
        words = f"{self._name}: {what}" + (f" {done} of {total}" if total else "")
        if words == self._printed:
            return
        self._printed = words
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[K{words}", nl=False, err=True)

    @staticmethod
    def clear() -> None:
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", nl=False, err=True)


def _home(ctx: click.Context, home: Home) -> Home:
    """`--home` may be before or after the subcommand."""
    outer = ctx.obj
    given = ctx.get_parameter_source("home") is not click.core.ParameterSource.DEFAULT
    return home if given or not isinstance(outer, Home) else outer


def _manifest(home: Home) -> "Manifest":
    from freehold.manifest import load_manifest

    return load_manifest(home.manifest, os.environ, home=home.root).manifest
