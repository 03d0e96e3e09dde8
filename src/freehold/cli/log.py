"""`freehold log`."""

import json

import click

from freehold.cli._history import ask, describe_entry, now
from freehold.cli._options import home_option, json_option
from freehold.home import Home


@click.command()
@click.argument("path", required=False)
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many entries.")
@home_option
@json_option
def command(home: Home, path: str | None, limit: int, as_json: bool) -> None:
    """List what happened to your files, newest first: who, why, and how much changed.

    \b
    Examples:
      freehold log
      freehold log workspace/src/app.py
    """
    answer = ask(home, "history.log", {"path": path, "limit": limit})
    if as_json:
        click.echo(json.dumps(answer))
        return
    moment = now()
    for entry in answer["entries"]:
        click.echo(describe_entry(entry, moment))
        for note in entry["notes"]:
            click.secho(f"        {note}", fg="yellow")
    if not answer["entries"]:
        click.echo("There is no entry yet.")
