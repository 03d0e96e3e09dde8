"""`freehold fleet`."""

import asyncio
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from freehold.agents.visible_text import make_visible
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.fleet.status import FleetStatus
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.fleet.section import FleetSection

NODE_PORT = 7870


@dataclass(frozen=True)
class ShownJoinCode:
    """`open_ports` says who must reach what."""

    code: str
    open_ports: list[str]


@click.group()
def command() -> None:
    """Computers on other machines.

    Set enabled = true and address in [fleet] of freehold.toml first. Freehold must run on this machine, the head. A
    machine joins with a one-time code and needs the same version, installed with: pip install 'freehold[fleet]'

    \b
    Examples:
      freehold fleet up
      freehold fleet join 10.0.0.5:7810/…
      freehold fleet status
      freehold fleet drain shed
      freehold fleet remove shed
    """


@command.command()
@home_option
@json_option(JsonOutput(ShownJoinCode))
def up(home: Home, as_json: bool) -> None:
    """Make a one-time code with which another machine joins. It is good for 15 minutes.

    Also shows which ports must be open, and to whom.

    \b
    Example:
      freehold fleet up
    """
    from freehold.fleet.ray_sandbox import find_ray_version

    section = _read_section(home)
    find_ray_version()  # without it the head answers, and never has a node
    code = str(_ask(home, "code")["code"])
    ports = _list_ports(section)
    if as_json:
        echo_json(ShownJoinCode(code, ports))
        return
    click.echo("On the other machine, with the same version of Freehold, run within 15 minutes:")
    click.echo(f"\n  freehold fleet join {code}\n")
    click.echo("Open these ports, and no others:")
    for line in ports:
        click.echo(f"  {line}")


@command.command()
@click.argument("code", required=False)
@click.option("--name", metavar="NAME", help="Its name in the fleet. [default: the name of this machine]")
@click.option(
    "--address", metavar="IP", help="The address at which the head reaches it. [default: the one that leads there]"
)
@click.option(
    "--port", type=click.IntRange(1, 65535), default=NODE_PORT, show_default=True, help="The port for the head."
)
@click.option(
    "--ports",
    type=click.IntRange(0, 65000),
    default=NODE_PORT + 1,
    show_default=True,
    help="The first of 50 ports of Ray; 0 lets it choose.",
)
@click.option("--cpus", type=click.FloatRange(0.1, 4096), help="Processors for computers. [default: all]")
@click.option("--memory", metavar="SIZE", help="Memory for computers, such as 16GiB. [default: four fifths]")
@click.option(
    "--cache", metavar="SIZE", default="2GiB", show_default=True, help="Disk for files that were sent before."
)
@click.option(
    "--label", "labels", metavar="NAME=VALUE", multiple=True, help="Such as region=home. Repeat it for several."
)
@click.option(
    "--card",
    "cards",
    type=click.IntRange(0, 63),
    multiple=True,
    help="The number of an NVIDIA GPU that computers may use. Repeat it for several.",
)
@click.option("--folder", metavar="FOLDER", help="Where it keeps its keys and its computers.")
def join(code: str | None, labels: tuple[str, ...], folder: str | None, **options: Any) -> None:
    """Let this machine be a node, until Ctrl-C. Without CODE, one that has joined before.

    Run it as root: computers then have a user of their own.

    \b
    Examples:
      freehold fleet join 10.0.0.5:7810/…/… --label region=home
      freehold fleet join
    """
    from freehold.fleet.join_code import read_join_code
    from freehold.fleet.join_request import join_fleet
    from freehold.fleet.node import run_node
    from freehold.fleet.node_folder import find_node_folder, read_settings
    from freehold.observe.logs import configure_logging

    place = find_node_folder(folder)
    if code is not None:
        found = read_join_code(code)
        settings = asyncio.run(join_fleet(found, _make_offer(found.host, labels, options), place))
        click.echo(f"Joined as {settings.name}. Its keys are in {place}")
    else:
        settings = read_settings(place)
    configure_logging("info", "human", "node")
    click.echo(f"The node {settings.name} offers {settings.cpus:g} processors and {settings.memory // 2**20} MiB")
    sys.stdout.flush()
    try:
        asyncio.run(run_node(place, settings))
    except* FreeholdError as errors:
        raise errors.exceptions[0] from None


@command.command()
@home_option
@json_option(JsonOutput(FleetStatus))
def status(home: Home, as_json: bool) -> None:
    """Show the nodes, the computers on them, and what waits and why.

    \b
    Examples:
      freehold fleet status
      freehold fleet status --json
    """
    from freehold.strict_json import decode

    found = decode(FleetStatus, _ask(home, "status"))
    if as_json:
        echo_json(found)
        return
    _print_status(found)


@command.command()
@click.argument("node")
@click.option("--off", is_flag=True, help="Let it get computers again.")
@home_option
def drain(node: str, off: bool, home: Home) -> None:
    """Give NODE no more computers. Those that it has stay until they end.

    \b
    Examples:
      freehold fleet drain shed
      freehold fleet drain shed --off
    """
    found = _ask(home, "drain", node=node, off=off)
    if off:
        click.echo(f"{node} gets computers again")
    else:
        click.echo(f"{node} gets no more computers; {found['computers']} are on it")


@command.command()
@click.argument("node")
@click.option("--lose", is_flag=True, help="Also while computers are on it: they are lost.")
@home_option
def remove(node: str, lose: bool, home: Home) -> None:
    """Remove NODE from the fleet. It must join again with a new code.

    \b
    Examples:
      freehold fleet drain shed
      freehold fleet remove shed
    """
    found = _ask(home, "remove", node=node, lose=lose)
    click.echo(f"{node} is removed" + (f"; {found['computers']} computers are lost" if found["computers"] else ""))


def _make_offer(head: str, labels: tuple[str, ...], options: dict[str, Any]) -> Any:
    import platform
    import re

    from freehold.fleet.join_request import NodeOffer
    from freehold.manifest.units import parse_size

    name = options["name"] or re.sub(r"[^a-z0-9-]", "-", platform.node().lower()).strip("-")[:32] or "node"
    pairs = [label.partition("=") for label in labels]
    if any(not value for _, _, value in pairs):
        raise FreeholdError("fleet.bad-value", "A label is written NAME=VALUE", hint="--label region=home")
    try:
        sizes = {what: parse_size(options[what]) for what in ("memory", "cache") if options[what] is not None}
    except ValueError as error:
        raise FreeholdError("fleet.bad-value", str(error)) from None
    return NodeOffer(
        name=name,
        address=options["address"] or _find_own_address(head),
        port=options["port"],
        ports=options["ports"],
        cpus=options["cpus"],
        memory=sizes.get("memory"),  # type: ignore[arg-type]  # a whole number, see parse_size
        cache=sizes["cache"],  # type: ignore[arg-type]
        labels={key: value for key, _, value in pairs},
        cards=tuple(sorted(set(options["cards"]))),
    )


def _find_own_address(head: str) -> str:
    """Of the interface that leads to the head. Nothing is sent."""
    import socket

    family = socket.AF_INET6 if ":" in head else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((head, 9))
        return str(probe.getsockname()[0])


def _read_section(home: Home) -> "FleetSection":
    import os

    from freehold.fleet.section import FleetSection
    from freehold.manifest import require_manifest

    section = require_manifest(home.manifest, os.environ).manifest.section(FleetSection)
    section.require_enabled()
    return section


def _list_ports(section: "FleetSection") -> list[str]:
    first = section.port
    head = f"[{section.address}]" if ":" in section.address else section.address
    ray = f"{first + 1}-{first + 52}" if section.fixed_ports else "all (fixed_ports is false)"
    return [
        f"{head}:{first} to machines that join",
        f"{head}:{ray} to all nodes (Ray)",
        f"each node:{NODE_PORT} to {section.address} (links and files)",
        f"each node:{NODE_PORT + 1}-{NODE_PORT + 51} to {section.address} and all nodes (Ray)",
    ]


def _ask(home: Home, do: str, **more: Any) -> Any:
    from freehold.fleet.fleet_client import ask_fleet
    from freehold.fleet.place import SOCKET

    return asyncio.run(ask_fleet(home.run / SOCKET, do, **more))


def _say(text: str) -> None:
    """What nodes, clients and the owner's commands have said is in it: it must not reach the terminal as it is."""
    click.echo(make_visible(text, lines=False))


def _print_status(found: FleetStatus) -> None:
    if not found.is_ready:
        _say("Ray is starting: new computers wait, those that run do not notice")
    if not found.nodes:
        _say("No machine has joined. Make a code: freehold fleet up")
    if found.trouble:
        _say(f"No machine can be started: {found.trouble}")
    for machine in found.machines:
        if machine.state != "joined":
            _say(f"{machine.name:16} {machine.state:9} {machine.kind}  {machine.trouble}")
    for node in found.nodes:
        used = f"{node.cpus - node.free_cpus:g} of {node.cpus:g} processors, {(node.memory - node.free_memory) // 2**20} of {node.memory // 2**20} MiB"
        if node.gpus:
            used += f", {node.gpus - node.free_gpus} of {node.gpus} GPUs"
        _say(f"{node.name:16} {node.state:9} {node.address:16} {node.computers} computers  {used}  {node.trouble}")
    for computer in found.computers:
        _say(f"  {computer.id} {computer.name:16} {computer.state:9} on {computer.node}  {computer.who}")
    for wait in found.waiting:
        _say(f"  {wait.id} waits, priority {wait.priority}: {wait.reason}  {wait.who}")
