"""`freehold memory`."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.cli._slots import call_slot
from freehold.home import Home
from freehold.slots.memory.contract import ORIGINS, SHARED

if TYPE_CHECKING:
    from freehold.slots.memory.contract import Memory, MemoryWrite

namespace_option = click.option("--namespace", "-n", metavar="NAME", help="shared, project:NAME or agent:NAME.")


@click.group(invoke_without_command=True)
@namespace_option
@click.option("--origin", type=click.Choice(ORIGINS), help="Only memories that come from there.")
@click.option("--pinned", is_flag=True, help="Only memories that every new session begins with.")
@click.option("--text", metavar="TEXT", help="Only memories with this text.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, metavar="N", help="At most N. [default: 50]")
@home_option
@json_option(JsonOutput("freehold.slots.memory.contract:Memory", "list"))
@click.pass_context
def command(
    ctx: click.Context,
    namespace: str | None,
    origin: str | None,
    pinned: bool,
    text: str | None,
    limit: int,
    home: Home,
    as_json: bool,
) -> None:
    """List, search and change what agents remember.

    The last changed is first. Freehold does not need to run. Memories are kept when slots.memory in freehold.toml is
    "local" or "external".

    \b
    Examples:
      freehold memory
      freehold memory search "when does the passport expire?"
      freehold memory add "I prefer aisle seats" --pin
      freehold memory forget m-2k4m9qxa7c
    """
    if ctx.invoked_subcommand is not None:
        return
    from freehold.slots.memory.contract import ListMemories

    chosen: Any = origin
    found = call_slot(home, "memory", ListMemories(namespace, chosen, True if pinned else None, text, limit))
    if as_json:
        echo_json(found.memories)
        return
    for one in found.memories:
        click.echo(_line(one))
    if not found.memories:
        click.echo('Nothing is remembered. Add something: freehold memory add "TEXT"')
    elif found.cursor is not None:
        click.secho(
            f"The last {limit} are shown; --limit shows more, and slots export memory all of them", dim=True, err=True
        )


@command.command()
@click.argument("query")
@click.option("--namespace", "-n", "namespaces", multiple=True, metavar="NAME", help="Only there; repeat it for more.")
@click.option("--limit", type=click.IntRange(1, 50), default=5, metavar="N", help="At most N. [default: 5]")
@home_option
@json_option(JsonOutput("freehold.slots.memory.contract:MemoryMatches"))
def search(query: str, namespaces: tuple[str, ...], limit: int, home: Home, as_json: bool) -> None:
    """Find memories by meaning and by exact words.

    \b
    Example:
      freehold memory search "how do guests get online?"
    """
    from freehold.slots.memory.contract import SearchMemories

    found = call_slot(home, "memory", SearchMemories(query, namespaces, limit))
    if as_json:
        echo_json(found)
        return
    for one in found.matches:
        click.echo(f"{one.score:.2f}  {_line(one.memory)}")
    if not found.matches:
        click.echo("Nothing is remembered about this.")
    if found.waiting:
        click.secho(f"{found.waiting} memories are found only by their words until Freehold runs", dim=True, err=True)
    if found.by == "words":
        click.secho("Only exact words could be compared: freehold memory status", dim=True, err=True)


@command.command()
@click.argument("memory", metavar="MEMORY")
@home_option
@json_option(JsonOutput("freehold.slots.memory.contract:Memory"))
def show(memory: str, home: Home, as_json: bool) -> None:
    """Show a memory with where it comes from and when it was used.

    \b
    Example:
      freehold memory show m-2k4m9qxa7c
    """
    from freehold.slots.memory.contract import GetMemory

    found = call_slot(home, "memory", GetMemory(memory))
    if as_json:
        echo_json(found)
        return
    from freehold.agents.visible_text import make_visible

    facts = {
        "namespace": found.namespace,
        "origin": _origin(found),
        "session": found.origin.session,
        "turn": found.origin.turn,
        "stored": f"{_moment(found.created)} by {found.created_by}",
        "changed": _moment(found.updated) if found.version > 1 else None,
        "expires": _moment(found.expires),
        "pinned": "yes" if found.pinned else None,
        "used": f"{found.used} times, last {_moment(found.last_used)}" if found.used else "never",
    }
    click.echo(make_visible(found.text))
    for name, value in facts.items():
        if value is not None:
            click.echo(f"  {name}: {make_visible(str(value))}")


@command.command()
@click.argument("text")
@namespace_option
@click.option("--days", type=click.IntRange(1, 36500), metavar="N", help="Forget it after N days.")
@click.option("--pin", is_flag=True, help="Begin every new session with it.")
@home_option
@json_option(JsonOutput("freehold.slots.memory.contract:Memory"))
def add(text: str, namespace: str | None, days: int | None, pin: bool, home: Home, as_json: bool) -> None:
    """Remember something.

    \b
    Example:
      freehold memory add "The garage code changes in May" --days 200
    """
    from freehold.slots.memory.contract import StoreMemory

    request = StoreMemory(text, namespace or SHARED, None, _after(days), pin)
    _change(home, request, as_json)


@command.command()
@click.argument("memory", metavar="MEMORY")
@click.argument("text", required=False)
@namespace_option
@click.option("--days", type=click.IntRange(0, 36500), metavar="N", help="Forget it after N days; 0 for never.")
@home_option
@json_option(JsonOutput("freehold.slots.memory.contract:Memory"))
def correct(memory: str, text: str | None, namespace: str | None, days: int | None, home: Home, as_json: bool) -> None:
    """Change the text, the namespace or the end of a memory. Your text becomes your word.

    \b
    Example:
      freehold memory correct m-2k4m9qxa7c "The meeting is on Thursday"
    """
    from freehold.slots.memory.contract import UpdateMemory

    expires = 0.0 if days == 0 else _after(days)
    _change(home, UpdateMemory(memory, text, namespace, expires), as_json)


@command.command()
@click.argument("memory", metavar="MEMORY")
@click.option("--remove", is_flag=True, help="Do not begin sessions with it any more.")
@home_option
@json_option(JsonOutput("freehold.slots.memory.contract:Memory"))
def pin(memory: str, remove: bool, home: Home, as_json: bool) -> None:
    """Begin every new session with a memory.

    \b
    Example:
      freehold memory pin m-2k4m9qxa7c
    """
    from freehold.slots.memory.contract import UpdateMemory

    _change(home, UpdateMemory(memory, pinned=not remove), as_json)


@command.command()
@click.argument("memory", metavar="MEMORY")
@home_option
def forget(memory: str, home: Home) -> None:
    """Remove a memory for good.

    \b
    Example:
      freehold memory forget m-2k4m9qxa7c
    """
    from freehold.slots.memory.contract import ForgetMemory

    click.echo(f"Forgot {call_slot(home, 'memory', ForgetMemory(memory)).id}")


@command.command()
@home_option
@json_option(JsonOutput("freehold.slots.memory.contract:MemoryStatus"))
def status(home: Home, as_json: bool) -> None:
    """Show the namespaces, and what makes meanings comparable.

    \b
    Example:
      freehold memory status
    """
    from freehold.slots.memory.contract import GetMemoryStatus

    found = call_slot(home, "memory", GetMemoryStatus())
    if as_json:
        echo_json(found)
        return
    for one in found.namespaces:
        click.echo(f"{one.name:<30} {one.memories}")
    waiting = f"; {found.waiting} wait for it" if found.waiting else ""
    click.echo(f"Meanings are compared by {found.embedding}{waiting}")
    if found.problem is not None:
        click.echo(found.problem)


def _change(home: Home, request: "MemoryWrite", as_json: bool) -> None:
    memory = call_slot(home, "memory", request)
    if as_json:
        echo_json(memory)
    else:
        click.echo(_line(memory))


def _after(days: int | None) -> float | None:
    return None if days is None else (datetime.now(UTC) + timedelta(days=days)).timestamp()


def _line(memory: "Memory") -> str:
    from freehold.agents.visible_text import make_visible

    pinned = "  pinned" if memory.pinned else ""
    return make_visible(f"{memory.id}  {memory.namespace:<14} {_origin(memory)}{pinned}  {memory.text}", lines=False)


def _origin(memory: "Memory") -> str:
    words = {"owner": "you", "program": "a program", "agent": "an agent", "tool": "a tool", "web": "a web page"}
    note = f" ({memory.origin.note})" if memory.origin.note else ""
    return words[memory.origin.kind] + note


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
