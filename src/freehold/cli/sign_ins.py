"""`freehold sign-ins`."""

import os
from datetime import UTC, datetime

import click

from freehold.cli._home_files import record_act
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option, require_home
from freehold.errors import FreeholdError
from freehold.home import Home, find_home
from freehold.identity.sign_ins import SignIns


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the signed-in browsers, and sign them out.

    \b
    Examples:
      freehold sign-ins
      freehold sign-ins revoke 3f2a9c0d11e4b768
      freehold sign-ins revoke --all
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_sign_ins, home=find_home(), as_json=False)


@command.command(name="list")
@home_option
@json_option(JsonOutput("freehold.identity.sign_ins:SignIn", "list"))
def list_sign_ins(home: Home, as_json: bool) -> None:
    """List all signed-in browsers, the most recently used first.

    \b
    Example:
      freehold sign-ins list --json
    """
    with _open(home) as sign_ins:
        found = sign_ins.list()
    if as_json:
        echo_json(found)
        return
    for sign_in in found:
        who = sign_in.did or "by link"
        click.echo(f"{sign_in.id}  {who}  last used {_moment(sign_in.seen)}  {sign_in.address}  {sign_in.label}")
    if not found:
        click.echo("No browser is signed in. Sign in: freehold open")


@command.command()
@click.argument("sign_in_id", required=False, metavar="ID")
@click.option("--all", "everywhere", is_flag=True, help="Sign out all browsers; also cancels unused sign-in links.")
@home_option
def revoke(sign_in_id: str | None, everywhere: bool, home: Home) -> None:
    """Sign out one browser, or all. Their open connections are closed within a second.

    \b
    Examples:
      freehold sign-ins revoke 3f2a9c0d11e4b768
      freehold sign-ins revoke --all
    """
    if everywhere == (sign_in_id is not None):
        raise click.UsageError("Give the ID of a sign-in (see freehold sign-ins), or --all")
    with _open(home) as sign_ins:
        if sign_in_id is None:
            ended = sign_ins.revoke_all()
            record_act(home, "identity.session_revoked", {"all": True, "ended": ended})
        elif sign_ins.revoke(sign_in_id):
            ended = 1
            record_act(home, "identity.session_revoked", {"session": sign_in_id})
        else:
            raise FreeholdError(
                "sign-in.not-found", f"There is no sign-in {sign_in_id}", hint="freehold sign-ins lists them"
            )
    click.echo(f"Signed out {ended} {'browser' if ended == 1 else 'browsers'}")


def _open(home: Home) -> SignIns:
    from freehold.manifest import load_manifest

    require_home(home)
    manifest = load_manifest(home.manifest, os.environ).manifest
    return SignIns(
        home.identity,
        owner=manifest.owner.did,
        idle=manifest.gateway.sign_in_idle,
        absolute=manifest.gateway.sign_in_absolute,
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
