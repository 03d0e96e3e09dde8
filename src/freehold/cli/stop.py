"""`freehold stop`."""

import json

import click

from freehold.cli._options import home_option, json_option
from freehold.home import Home


@click.command()
@click.argument("why", default="")
@click.option("--lift", is_flag=True, help="Allow agents and model requests again.")
@home_option
@json_option
def command(why: str, lift: bool, home: Home, as_json: bool) -> None:
    """Kill switch: end all agents and refuse model requests.

    Takes effect within a second and stays in force, also after a restart, until you lift it. Files, history and undo
    keep working.

    \b
    Examples:
      freehold stop
      freehold stop "it deletes the wrong files"
      freehold stop --lift
    """
    from freehold.egress.models.ledger import Ledger, ensure_tables
    from freehold.home import ensure_private_folder
    from freehold.timeline import Timeline

    ensure_private_folder(home.root)
    with Timeline(home.timeline) as timeline:
        ensure_tables(timeline)
        ledger = Ledger(timeline)
        if lift:
            ledger.resume()
        else:
            ledger.stop(why=why)
        stopped = ledger.stopped()
    if as_json:
        click.echo(json.dumps({"stopped": stopped is not None, "at": stopped.at if stopped else None}))
    elif stopped is None:
        click.echo("Agents and model requests are allowed again.")
    else:
        click.echo(
            "Stopped: agents are ended and model requests are refused. To allow them again: freehold stop --lift"
        )
