"""`freehold restart`."""

import json

import click

from freehold.cli._options import home_option, json_option
from freehold.errors import FreeholdError
from freehold.home import Home


@click.command()
@click.argument("program")
@home_option
@json_option
def command(program: str, home: Home, as_json: bool) -> None:
    """End PROGRAM in good order and start it again; the others stay up.

    \b
    Examples:
      freehold restart gateway
      freehold restart computer
    """
    from freehold.keeper.client import call_keeper

    found = call_keeper(home, "restart", {"program": program}, timeout=120)
    if as_json:
        click.echo(json.dumps(found))
    elif found["state"] == "ready":
        click.echo(f"{program} is ready" + (f" (pid {found['pid']})" if found["pid"] else ""))
    if found["state"] != "ready":
        raise FreeholdError(
            "program.not-ready",
            f"{program} is {found['state']}" + (f": {found['last_error']}" if found["last_error"] else ""),
            hint=f"freehold logs {program} shows why",
        )
