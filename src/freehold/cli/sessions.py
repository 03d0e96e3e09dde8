"""`freehold sessions`."""

from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypedDict

import click

from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option, require_home
from freehold.home import Home
from freehold.strict_json import IsoTime

if TYPE_CHECKING:
    from freehold.agents.sessions.rows import SessionRow

NO_LIMIT = -1
_STATES = {"needs_you": "needs you"}


class ListedSession(TypedDict):
    """`seq` is the number of its last event. `waiting` is its place in the queue, while its agent may not start yet."""

    id: str
    title: str
    agent: str
    model: str | None
    status: Literal["idle", "working", "needs_you", "failed", "queued"]
    created: IsoTime
    updated: IsoTime
    archived: bool
    cost: float | None
    seq: int
    parent: str | None
    unread: bool
    mode: str | None
    asks: bool | None
    waiting: dict[str, Any] | None
    folder: str


@click.group(invoke_without_command=True, subcommand_metavar="")
@click.option("--archived", is_flag=True, help="List archived sessions instead.")
@home_option
@json_option(JsonOutput(ListedSession, "list"))
@click.pass_context
def command(ctx: click.Context, archived: bool, home: Home, as_json: bool) -> None:
    """List the sessions (conversations with agents).

    The most recently changed is first. Freehold does not need to run. To list signed-in browsers, use freehold sign-ins.

    \b
    Examples:
      freehold sessions
      freehold sessions --json
      freehold chat --session 3f2a9c0d11e4b768
    """
    if ctx.invoked_subcommand is not None:
        return
    found = _read(home, archived=archived)
    click.secho("Signed-in browsers: freehold sign-ins", dim=True, err=True)
    if as_json:
        echo_json([session.as_json() for session in found])
    elif found:
        _show(found)
    else:
        click.echo("There are no archived sessions." if archived else "There are no sessions. Start one: freehold chat")


# `freehold sessions` listed browsers in 0.1.0. Its old subcommands name the new command.


@command.command(name="list", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def list_moved(words: tuple[str, ...]) -> NoReturn:
    _moved("list", words)


@command.command(name="revoke", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def revoke_moved(words: tuple[str, ...]) -> NoReturn:
    _moved("revoke", words)


def _moved(verb: str, words: tuple[str, ...]) -> NoReturn:
    raise click.UsageError(
        "freehold sessions is about conversations with agents. For signed-in browsers, run: "
        + " ".join(("freehold sign-ins", verb, *words))
    )


def _read(home: Home, *, archived: bool) -> "list[SessionRow]":
    from freehold.agents.sessions.store import SessionStore
    from freehold.timeline import Timeline

    require_home(home)
    if not home.timeline.exists():
        return []
    with Timeline(home.timeline) as timeline:
        store = SessionStore(timeline)
        store.prepare()
        return store.search(archived=archived, unused=False, limit=NO_LIMIT)


def _show(sessions: "list[SessionRow]") -> None:
    from freehold.agents.visible_text import make_visible

    agents = [make_visible(session.agent) for session in sessions]
    states = [_STATES.get(session.status, session.status) for session in sessions]
    agent_width, state_width = max(map(len, agents)), max(map(len, states))
    for session, agent, state in zip(sessions, agents, states, strict=True):
        changed = session.updated[:16].replace("T", " ")
        title = make_visible(session.title)
        click.echo(f"{session.id}  {agent:<{agent_width}}  {state:<{state_width}}  {changed} UTC  {title}")
