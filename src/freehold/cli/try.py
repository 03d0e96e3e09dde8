"""`freehold try`."""

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from freehold.cli._options import home_option
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.client._async.sessions import AsyncSession


@click.command()
@home_option
def command(home: Home) -> None:
    """Take a short tour with a script in the place of a model.

    A real agent in the real computer changes a file, asks you first, and you can undo it. Needs no key. Freehold must
    run, with the agent builtin: freehold agents add builtin

    \b
    Example:
      freehold try
    """
    from freehold.cli._freehold_address import open_address

    click.secho("This is a tour: a script answers in the place of a model. Everything else is real.\n", bold=True)
    with open_address(home, None, "try") as (address, token):
        asyncio.run(_play(address, token))


async def _play(address: str, token: str | None) -> None:
    from freehold.cli.chat import make_view, run_turn
    from freehold.client import Freehold

    async with Freehold(address, token=token) as freehold:
        session, prompt = await freehold.sessions.open_tour()
        click.secho(f"> {prompt}\n", dim=True)
        await run_turn(session, prompt, (), make_view(address, session), as_json=False)
        changes = await _read_changes(session)
        if changes is None:
            click.echo("\nHistory did not answer. To see what was changed: freehold log")
        elif not any(changes[name] for name in ("added", "changed", "removed")):
            click.echo("\nThe change was not made. There is nothing to undo.")
        elif changes["shared"]:
            click.echo(f"\nOthers changed files as well. To take the change back: freehold revert {changes['entry']}")
        elif sys.stdin.isatty() and click.confirm("\nUndo the change now?", default=True):
            outcome = await freehold.history.revert(changes["entry"], since=changes["before"])
            click.echo(outcome.summary)
        else:
            click.echo(f"\nTo take the change back: freehold revert {changes['entry']}")
        click.echo("To connect a model of your own: freehold models add")


async def _read_changes(session: "AsyncSession") -> dict[str, Any] | None:
    """What the turn changed, as history says; None when that is not known."""
    changes: dict[str, Any] | None = None
    async for event in session.events():
        if event.kind == "turn.ended":
            changes = event.data.get("changes")
    return changes
