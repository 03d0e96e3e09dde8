"""`freehold sessions`."""

import json
import os
from dataclasses import asdict
from datetime import UTC, datetime

import click

from freehold.cli._options import home_option, json_option
from freehold.errors import FreeholdError
from freehold.home import Home, find_home
from freehold.identity.sessions import Sessions


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show which browsers are signed in, and sign them out.

    \b
    Examples:
      freehold sessions
      freehold sessions revoke 3f2a9c0d11e4b768
      freehold sessions revoke --all
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_sessions, home=find_home(), as_json=False)


@command.command(name="list")
@home_option
@json_option
def list_sessions(home: Home, as_json: bool) -> None:
    """Show every browser that is signed in, the last used first.

    \b
    Example:
      freehold sessions list --json
    """
    with _open(home) as sessions:
        found = sessions.list()
    if as_json:
        click.echo(json.dumps([asdict(session) for session in found]))
        return
    for session in found:
        who = session.did or "by link"
        click.echo(f"{session.id}  {who}  seen {_moment(session.seen)}  {session.address}  {session.label}")
    if not found:
        click.echo("No browser is signed in. freehold open signs one in.")


@command.command()
@click.argument("session_id", required=False, metavar="ID")
@click.option("--all", "everywhere", is_flag=True, help="Sign out everywhere, outstanding links included.")
@home_option
def revoke(session_id: str | None, everywhere: bool, home: Home) -> None:
    """Sign out one browser, or every one; what it has open is closed within a second.

    \b
    Examples:
      freehold sessions revoke 3f2a9c0d11e4b768
      freehold sessions revoke --all
    """
    if everywhere == (session_id is not None):
        raise click.UsageError("Give the id of a session (freehold sessions shows them), or --all")
    with _open(home) as sessions:
        if session_id is None:
            ended = sessions.revoke_all()
            _record(home, {"all": True, "ended": ended})
        elif sessions.revoke(session_id):
            ended = 1
            _record(home, {"session": session_id})
        else:
            raise FreeholdError(
                "sessions.unknown", f"There is no session {session_id}", hint="freehold sessions shows them"
            )
    click.echo(f"{ended} signed out")


def _open(home: Home) -> Sessions:
    from freehold.manifest import load_manifest

    if not home.root.is_dir():
        raise FreeholdError("home.missing", f"There is no Freehold in {home.root}", hint="freehold up makes one")
    manifest = load_manifest(home.manifest, os.environ).manifest
    return Sessions(
        home.identity,
        owner=manifest.owner.did,
        idle=manifest.gateway.session_idle,
        absolute=manifest.gateway.session_absolute,
    )


def _record(home: Home, data: dict[str, str | int | bool]) -> None:
    from freehold.timeline import Timeline

    with Timeline(home.timeline) as timeline:
        timeline.append("identity.session_revoked", data, who="owner")


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
