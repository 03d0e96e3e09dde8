"""`freehold mesh`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.home import Home
from freehold.mesh.grants import GRANTS

if TYPE_CHECKING:
    from freehold.client._sync.mesh import SyncMesh
    from freehold.client.mesh_models import MeshClientInfo, MeshInfo, NeighbourInfo, WorkDetails
    from freehold.mesh.nostr.keys import NostrKey

grant_option = click.option(
    "--grant",
    "grants",
    multiple=True,
    type=click.Choice(GRANTS),
    help="What the neighbour may use here. Repeat it for several. [default: nothing]",
)
name_option = click.option("--name", metavar="NAME", help="Its name here. [default: what it calls itself]")
NEIGHBOUR = "freehold.client.mesh_models:NeighbourInfo"
WORK = "freehold.client.mesh_models:WorkInfo"
PROOFS = {
    "none": "names no account",
    "claimed": "not checked yet",
    "proven": "the account names this key",
    "refuted": "NOT CONFIRMED: the account does not name this key",
}


@contextmanager
def _mesh(home: Home) -> "Iterator[SyncMesh]":
    from freehold.cli._running_freehold import running_freehold

    with running_freehold(home, "mesh", "admin") as freehold:
        yield freehold.mesh


@click.group()
def command() -> None:
    """Other Freeholds: pair with them, and share slots and work.

    Set mode = "peer" in [mesh] of freehold.toml first. Freehold must run.

    \b
    Examples:
      freehold mesh status
      freehold mesh pair --new --grant work
      freehold mesh pair freehold-pair:…
      freehold mesh send laptop "Write a poem into poem.txt"
      freehold mesh evict laptop
    """


@command.command()
@home_option
@json_option(JsonOutput("freehold.client.mesh_models:MeshInfo"))
def status(home: Home, as_json: bool) -> None:
    """Show the key of this Freehold, its relays and its host.

    \b
    Example:
      freehold mesh status
    """
    with _mesh(home) as mesh:
        found = mesh.status()
    if as_json:
        echo_json(found.model_dump())
        return
    _print_status(found)


@command.command()
@click.option("--export", "show_secret", is_flag=True, help="Print the secret key (nsec). Keep it out of logs.")
@click.option("--replace", is_flag=True, help="Use a new key from now on. Pair with all neighbours again.")
@click.option("--import", "read_secret", is_flag=True, help="Use the secret key from standard input from now on.")
@click.option("--record", is_flag=True, help="Print the record that your account needs to name this key.")
@home_option
def identity(show_secret: bool, replace: bool, read_secret: bool, record: bool, home: Home) -> None:
    """Show, export or replace the key pair of this Freehold.

    \b
    Examples:
      freehold mesh identity
      freehold mesh identity --export > freehold-key.txt
      freehold mesh identity --import < freehold-key.txt
    """
    if show_secret:
        _print_secret(home)
        return
    if record:
        _print_record(home)
        return
    with _mesh(home) as mesh:
        if read_secret:
            click.echo(mesh.replace_key(_read_secret()).npub)
        elif replace:
            click.echo(mesh.replace_key().npub)
        else:
            click.echo(mesh.status().npub)


@command.command()
@click.argument("code", required=False)
@click.option("--new", is_flag=True, help="Make a code for the owner of the other Freehold.")
@click.option("--yes", is_flag=True, help="Do not ask whether the key is the right one.")
@grant_option
@name_option
@home_option
@json_option(JsonOutput("freehold.client.mesh_models:PairingCodeInfo", when="--new"), JsonOutput(NEIGHBOUR))
def pair(
    code: str | None, new: bool, yes: bool, grants: tuple[str, ...], name: str | None, home: Home, as_json: bool
) -> None:
    """Pair with another Freehold: make a code, or enter theirs.

    \b
    Examples:
      freehold mesh pair --new --grant work --name laptop
      freehold mesh pair freehold-pair:… --grant beads
    """
    if new == (code is not None):
        raise click.UsageError("Give a code, or --new to make one")
    with _mesh(home) as mesh:
        if code is None:
            made = mesh.create_code(grants, name=name)
            if as_json:
                echo_json(made.model_dump())
                return
            click.echo(f"Enter this at the other Freehold within ten minutes: freehold mesh pair {made.code}")
            click.echo(f"It must show the key {made.npub}")
            return
        if not yes:
            found = mesh.read_code(code)
            click.echo(f"{found.name} at {found.url}\n  key      {found.npub}")
            click.echo(f"  account  {found.did or 'none'} ({PROOFS.get(found.proof, found.proof)})")
            click.confirm("Is this the key that the other owner sees?", abort=True)
        neighbour = mesh.pair(code, grants, name=name)
    if as_json:
        echo_json(neighbour.model_dump())
    else:
        click.echo(f"Paired with {neighbour.name}. It may use here: {', '.join(neighbour.grants) or 'nothing'}")


@command.command()
@home_option
@json_option(JsonOutput(NEIGHBOUR, "list"))
def neighbours(home: Home, as_json: bool) -> None:
    """List the paired Freeholds.

    \b
    Example:
      freehold mesh neighbours
    """
    with _mesh(home) as mesh:
        found = mesh.neighbours()
    if as_json:
        echo_json([one.model_dump() for one in found])
    elif not found:
        click.echo("There are no neighbours. Make a code: freehold mesh pair --new")
    for one in found if not as_json else ():
        _print_neighbour(one)


@command.command()
@click.argument("name")
@grant_option
@home_option
def grant(name: str, grants: tuple[str, ...], home: Home) -> None:
    """Change what a neighbour may use here. Without --grant it may use nothing.

    \b
    Example:
      freehold mesh grant laptop --grant beads --grant work
    """
    with _mesh(home) as mesh:
        found = mesh.grant(name, grants)
    click.echo(f"{found.name} may use here: {', '.join(found.grants) or 'nothing'}")


@command.command()
@click.argument("name")
@home_option
def evict(name: str, home: Home) -> None:
    """End all that a neighbour may do here, at once. It must pair again.

    \b
    Example:
      freehold mesh evict laptop
    """
    with _mesh(home) as mesh:
        click.echo(f"{mesh.evict(name).name} is out")


@command.command()
@click.argument("name")
@click.argument("prompt")
@click.option("--title", metavar="TEXT", help="Its name in the list.")
@home_option
@json_option(JsonOutput(WORK))
def send(name: str, prompt: str, title: str | None, home: Home, as_json: bool) -> None:
    """Send work to an agent of a neighbour.

    It works there, in a computer of its own. The files that it makes come back, and you decide about them.

    \b
    Example:
      freehold mesh send laptop "Write a poem about autumn into poem.txt"
    """
    with _mesh(home) as mesh:
        made = mesh.send(name, prompt, title=title)
    if as_json:
        echo_json(made.model_dump())
    else:
        click.echo(f"Sent as {made.id}. See it with: freehold mesh work {made.id}")


@command.command()
@click.argument("id", required=False)
@click.option("--accept", is_flag=True, help="Bring the returned files into the workspace.")
@click.option("--into", default="", metavar="FOLDER", help="The folder of the workspace for --accept.")
@click.option("--force", is_flag=True, help="With --accept, overwrite files that are there and differ.")
@click.option("--drop", is_flag=True, help="Forget the returned files.")
@click.option("--stop", is_flag=True, help="Ask the neighbour to end it.")
@home_option
@json_option(
    JsonOutput(WORK, "list"),
    JsonOutput("freehold.client.mesh_models:WorkDetails", when="ID"),
    JsonOutput(WORK, when="ID --accept"),
    JsonOutput(WORK, when="ID --drop"),
    JsonOutput(WORK, when="ID --stop"),
)
def work(
    id: str | None, accept: bool, into: str, force: bool, drop: bool, stop: bool, home: Home, as_json: bool
) -> None:
    """List the work that was sent, or decide about its files.

    \b
    Examples:
      freehold mesh work
      freehold mesh work 3f9c2b7a11d04e58
      freehold mesh work 3f9c2b7a11d04e58 --accept --into poems
    """
    if id is None or accept + drop + stop > 1:
        if id is not None or accept or drop or stop:
            raise click.UsageError("Name one job, and at most one of --accept, --drop and --stop")
        _list_work(home, as_json)
        return
    with _mesh(home) as mesh:
        if accept:
            job = mesh.accept(id, into, force=force)
        elif drop:
            job = mesh.drop(id)
        elif stop:
            job = mesh.stop(id)
        else:
            _print_details(mesh.show_work(id), as_json)
            return
    if as_json:
        echo_json(job.model_dump())
    elif job.entry is not None:
        click.echo(f"Accepted into {job.folder or 'the workspace'}. Take it back with: freehold revert {job.entry}")
    else:
        click.echo(f"{job.id} is {job.state}")


@command.command()
@click.argument("name")
@home_option
@json_option(JsonOutput("freehold.client.mesh_models:AgentCardInfo", "list"))
def agents(name: str, home: Home, as_json: bool) -> None:
    """List the agents of a neighbour that take work.

    \b
    Example:
      freehold mesh agents laptop
    """
    with _mesh(home) as mesh:
        found = mesh.agents(name)
    if as_json:
        echo_json([one.model_dump() for one in found])
        return
    for one in found:
        click.echo(f"{_plain(one.name)}  {_plain(one.description)}")
        for skill in one.skills:
            click.echo(f"  {_plain(skill.name)}: {_plain(skill.description)}")
    if not found:
        click.echo(f"{name} takes no work of you")


@command.command()
@click.argument("name")
@click.argument("text")
@home_option
def tell(name: str, text: str, home: Home) -> None:
    """Send an encrypted message to a neighbour over the relays.

    \b
    Example:
      freehold mesh tell laptop "The backup is done"
    """
    with _mesh(home) as mesh:
        mesh.tell(name, text)
    click.echo("It is sent as soon as a relay takes it")


@command.command()
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="How many to show.")
@home_option
@json_option(JsonOutput("freehold.client.mesh_models:NeighbourMessageInfo", "list"))
def events(limit: int, home: Home, as_json: bool) -> None:
    """Show what neighbours wrote and published, the newest first.

    \b
    Example:
      freehold mesh events --limit 10
    """
    with _mesh(home) as mesh:
        found = mesh.messages(limit)
    if as_json:
        echo_json([one.model_dump() for one in found])
        return
    for one in found:
        click.echo(
            f"{one.at:%Y-%m-%d %H:%M}  {one.neighbour or 'a former neighbour'}  {one.kind}: {_plain(one.content)}"
        )
    if not found:
        click.echo("No neighbour has written anything")


@command.command()
@home_option
@json_option(JsonOutput("freehold.client.mesh_models:MeshClientInfo", "list"))
def clients(home: Home, as_json: bool) -> None:
    """List the clients that are registered with this host.

    \b
    Example:
      freehold mesh clients
    """
    with _mesh(home) as mesh:
        found = mesh.clients()
    if as_json:
        echo_json([one.model_dump() for one in found])
        return
    for one in found:
        _print_client(one)
    if not found:
        click.echo("No client is registered")


def _print_client(one: "MeshClientInfo") -> None:
    contracts = ", ".join(f"{_plain(name)} {version}" for name, version in sorted(one.contracts.items()))
    able = ", ".join(_plain(word) for word in one.capabilities)
    click.echo(f"{one.name}  {_plain(one.version)}  {_plain(one.health)}  last heard {one.heard:%Y-%m-%d %H:%M:%S}")
    click.echo(f"  image {_plain(one.image or 'none')}, load {one.load:.2f}, works there: {able or 'nothing'}")
    click.echo(f"  contracts: {contracts or 'none'}; uses here: {', '.join(one.grants) or 'nothing'}")


def _plain(text: str) -> str:
    """Words of others, without control characters."""
    from freehold.agents.visible_text import make_visible

    return make_visible(text)


def _list_work(home: Home, as_json: bool) -> None:
    with _mesh(home) as mesh:
        found = mesh.work()
    if as_json:
        echo_json([one.model_dump() for one in found])
        return
    for one in found:
        click.echo(f"{one.id}  {one.state:<9}  {one.neighbour or 'a former neighbour'}  {one.title}")
    if not found:
        click.echo('Nothing was sent yet. Send work: freehold mesh send NAME "PROMPT"')


def _print_details(found: "WorkDetails", as_json: bool) -> None:
    if as_json:
        echo_json(found.model_dump())
        return
    job = found.work
    click.echo(f"{job.title}\n  {job.state}{f': {_plain(job.error)}' if job.error else ''}")
    for event in found.events:
        if event.kind == "message":
            click.echo(f"  {_plain(str(event.data.get('text', '')))}")
    for one in found.files:
        traits = [
            *(["a program"] if one.is_program else []),
            *([f"runs by itself: {one.runs_by_itself}"] if one.runs_by_itself else []),
        ]
        click.echo(f"  {one.path}  {one.size} bytes" + (f" ({'; '.join(traits)})" if traits else ""))
    if job.state == "returned":
        click.echo(f"Take it with: freehold mesh work {job.id} --accept --into FOLDER, or forget it with --drop")


def _read_secret() -> str:
    text = click.prompt("Secret key", hide_input=True) if sys.stdin.isatty() else sys.stdin.read(1024)
    return str(text).strip()


def _find_key(home: Home) -> "NostrKey":
    from freehold.egress.vault import Vault
    from freehold.errors import FreeholdError
    from freehold.mesh.identity import find_key

    key = find_key(Vault(home.vault))
    if key is None:
        raise FreeholdError(
            "mesh.no-key", "This Freehold has no key yet", hint='Set mode = "peer" in [mesh], then restart'
        )
    return key


def _print_secret(home: Home) -> None:
    click.echo(_find_key(home).export())


def _print_record(home: Home) -> None:
    """The record, its collection and its key there, for a program that writes to the account."""
    from datetime import UTC, datetime

    from freehold.mesh.did_proof import COLLECTION, make_record

    record = make_record(_find_key(home).public, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
    echo_json({"collection": COLLECTION, "rkey": record["npub"], "record": record})


def _print_status(found: "MeshInfo") -> None:
    click.echo(f"{found.name} ({found.mode})\n  key      {found.npub}\n  account  {found.did or 'none'}")
    click.echo(f"  address  {found.url or 'none'}")
    if found.relay is not None:
        click.echo(f"  relay    {found.relay}")
    for relay in found.relays:
        seen = "never connected" if relay.seen is None else f"last connected {relay.seen:%Y-%m-%d %H:%M} UTC"
        more = "".join(f", {words}" for words in (seen, f"{relay.waiting} waiting" if relay.waiting else "") if words)
        click.echo(f"  {relay.url}: {relay.state}{f' ({relay.error})' if relay.error else ''}{more}")
    if found.registration is not None:
        one = found.registration
        serves = f", serves {', '.join(_plain(slot) for slot in one.slots)}" if one.slots else ""
        click.echo(f"  host     {one.host}: {one.state}{f' ({one.error})' if one.error else ''}{serves}")


def _print_neighbour(one: "NeighbourInfo") -> None:
    click.echo(f"{one.name}  {one.npub}")
    if one.did is not None:
        click.echo(f"  account  {one.did} ({PROOFS.get(one.proof, one.proof)})")
    click.echo(f"  uses here: {', '.join(one.grants) or 'nothing'}; gives: {', '.join(one.given) or 'nothing'}")
