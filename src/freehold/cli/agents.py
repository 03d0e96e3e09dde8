"""`freehold agents`."""

import sys
from typing import TYPE_CHECKING, TypedDict

import click

from freehold.cli._completion import offer, read_agent_names
from freehold.cli._home_files import read_manifest
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import choose_home, home_option
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.agents.catalogue.acp_registry import RegistryAgent
    from freehold.agents.catalogue.definition import AgentDefinition
    from freehold.agents.catalogue.trial import AgentTrial
    from freehold.manifest import Manifest

_ASKS = {
    True: "",
    False: "  (not known to ask before it acts)",
    None: "  (its first session shows whether it asks before it acts)",
}


class ListedAgent(TypedDict):
    """`asks` is null for an agent whose first session shows whether it asks before it acts."""

    name: str
    title: str
    installed: bool
    package: str | None
    asks: bool | None
    default: bool
    problem: str | None


@click.group(invoke_without_command=True)
@home_option
@json_option(JsonOutput(ListedAgent, "list"))
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

    manifest = read_manifest(home)
    rows: list[ListedAgent] = []
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
        echo_json(rows)
        return
    for row in rows:
        mark = "*" if row["default"] else " "
        state = "not installed" if not row["installed"] else row["problem"] or "ready"
        words = f"{mark} {row['name']:<12} {row['title']:<24} {state}"
        click.secho(words + _ASKS[row["asks"]], dim=not row["installed"])
    click.echo("\n* is the default agent. To install an agent: freehold agents add NAME")


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…", shell_complete=offer(read_agent_names))
@click.option("--if-new", is_flag=True, help="Do nothing unless this Freehold has never run.")
@home_option
@click.pass_context
def add(ctx: click.Context, names: tuple[str, ...], if_new: bool, home: Home) -> None:
    """Install agents.

    Packages are pinned and checked by hash. An interrupted download continues where it stopped.

    \b
    Example:
      freehold agents add claude opencode
    """
    from freehold.agents.catalogue.installation import install_agent
    from freehold.agents.catalogue.registry import find_agent, is_known_to_ask
    from freehold.home import ensure_private_folder

    home = choose_home(ctx, home)
    if if_new and home.history.exists():
        return
    manifest = read_manifest(home)
    entries = [find_agent(manifest, name) for name in names]
    ensure_private_folder(home.root)
    for entry in entries:
        receipt = install_agent(home, entry, ProgressLine(entry.name))
        ProgressLine.clear()
        click.echo(f"Installed {entry.name} ({receipt.package})")
        if is_known_to_ask(entry) is False:
            click.secho(f"warning: {entry.title} is not known to ask before it acts", fg="yellow", err=True)


@command.command()
@click.argument("index", type=click.Path(allow_dash=True), metavar="INDEX")
@click.argument("names", nargs=-1, metavar="[ID]…")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@home_option
@json_option(JsonOutput("freehold.agents.catalogue.acp_registry:RegistryAgent", "list"))
@click.pass_context
def registry(ctx: click.Context, index: str, names: tuple[str, ...], yes: bool, home: Home, as_json: bool) -> None:
    """List the agents of an ACP registry, or install some of them.

    INDEX is the index of a registry, registry.json: a file, - for standard input, or an address with https (then Freehold
    must run: it is read through egress). An agent that is added is written into freehold.toml and installed as any
    other: pinned, and by its hashes. Of a program in an archive the hash is that of the index, or of what is there when it
    is added. Like every agent that Freehold does not know, it works only in a mode in which it asks.

    \b
    Examples:
      freehold agents registry registry.json
      freehold agents registry https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json qwen-code
    """
    from freehold.agents.catalogue.acp_registry import find_in_registry

    home = choose_home(ctx, home)
    agents = _read_index(home, index)
    chosen = [find_in_registry(agents, name) for name in names]
    for one in chosen:
        _refuse_known(one)
    shown = chosen or agents
    if as_json and not names:
        echo_json(shown)
        return
    for one in shown:
        click.secho(f"{one.id:<24} {one.version:<12} {one.license:<14} {one.package or one.why}", dim=not one.package)
        click.echo(f"  {one.description}")
    for one in chosen:
        _show_section(one)
    if chosen and not yes and not click.confirm("Write this into freehold.toml and install it?", err=True):
        raise click.Abort
    for one in chosen:
        _add_from_registry(home, one)


def _read_index(home: Home, index: str) -> "list[RegistryAgent]":
    from freehold.agents.catalogue.acp_registry import MAX_INDEX, RegistryAgent, read_registry
    from freehold.agents.catalogue.remote_registry import is_address

    if is_address(index):
        from freehold.cli._running_freehold import running_freehold

        with running_freehold(home, "agents", "admin") as freehold:
            return [RegistryAgent(**one.model_dump()) for one in freehold.agents.read_registry(index)]
    try:
        with click.open_file(index, "rb") as file:
            return read_registry(file.read(MAX_INDEX + 1))
    except OSError as error:
        raise click.BadParameter(f"'{index}': {error.strerror}") from None


def _refuse_known(chosen: "RegistryAgent") -> None:
    """An index cannot put its own package in the place of an agent that Freehold knows."""
    from freehold.errors import FreeholdError
    from freehold.manifest.exceptions import AGENTS

    if chosen.id in AGENTS:
        raise FreeholdError(
            "registry.name-taken",
            f"{chosen.id} is an agent that Freehold knows, and the index has another one of that name",
            hint=f"freehold agents add {chosen.id}; or describe the other one under another name in freehold.toml",
        )


def _show_section(chosen: "RegistryAgent") -> None:
    """What would run, and with which variables: the owner reads it before it is written."""
    import shlex

    from freehold.agents.visible_text import make_visible

    click.echo(make_visible(f"  command  {shlex.join([chosen.program, *chosen.arguments])}", lines=False))
    for name, value in chosen.env.items():
        click.echo(make_visible(f"  env      {name}={value}", lines=False))


def _add_from_registry(home: Home, chosen: "RegistryAgent") -> None:
    """What the owner has set beside it, such as `memory` and `mode`, stays."""
    import os
    from dataclasses import replace

    from freehold.agents.catalogue.acp_registry import choose_program
    from freehold.agents.catalogue.archive import KIND, pin_archive
    from freehold.agents.catalogue.installation import install_agent
    from freehold.agents.catalogue.npm import list_programs
    from freehold.agents.catalogue.registry import find_agent
    from freehold.home import ensure_private_folder
    from freehold.manifest.change import change_manifest

    ensure_private_folder(home.root)
    if chosen.package.startswith(KIND):
        chosen = replace(chosen, package=pin_archive(home, chosen.package, ProgressLine(chosen.id)))
    change_manifest(home.manifest, chosen.list_keys(), os.environ)
    receipt = install_agent(home, find_agent(read_manifest(home), chosen.id), ProgressLine(chosen.id))
    ProgressLine.clear()
    kind, _, package = chosen.package.partition(":")
    program = choose_program(chosen, list_programs(home, chosen.id, package)) if kind == "npm" else chosen.program
    if program != chosen.program:
        change_manifest(home.manifest, {f"agents.{chosen.id}.command": [program, *chosen.arguments]}, os.environ)
    click.echo(
        f"Installed {chosen.id} ({receipt.package}, {receipt.lock[:19]}). Test it: freehold agents test {chosen.id}"
    )


@command.command()
@click.argument("name", shell_complete=offer(read_agent_names))
@home_option
@click.pass_context
def remove(ctx: click.Context, name: str, home: Home) -> None:
    """Uninstall an agent. Its sessions are kept.

    \b
    Example:
      freehold agents remove claude
    """
    from freehold.agents.catalogue.installation import remove_agent

    remove_agent(choose_home(ctx, home), name)
    click.echo(f"Removed {name}")


@command.command()
@click.argument("name", shell_complete=offer(read_agent_names))
@home_option
@json_option(JsonOutput("freehold.agents.catalogue.trial:AgentTrial"))
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

    home = choose_home(ctx, home)
    manifest = read_manifest(home)
    entry = find_agent(manifest, name)
    problem = find_problem(home, entry)
    if problem is not None:
        raise FreeholdError("agent.not-installed", f"{entry.title}: {problem}", hint=f"freehold agents add {name}")
    trial = asyncio.run(_try_agent(home, entry, manifest))
    if as_json:
        echo_json(trial.as_json())
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
