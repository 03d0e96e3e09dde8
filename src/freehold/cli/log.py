"""`freehold log`."""

import click

from freehold.cli._history import ask, describe_entry, now
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.history.calls import ListEntries
from freehold.home import Home


@click.command()
@click.argument("path", required=False)
@click.option(
    "-n", "--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="The number of entries to list."
)
@home_option
@json_option(JsonOutput("freehold.history.calls:EntryList"))
def command(home: Home, path: str | None, limit: int, as_json: bool) -> None:
    """List the history of your files, newest first.

    Each entry shows who made the change, why, and how much changed.

    \b
    Examples:
      freehold log
      freehold log workspace/src/app.py
    """
    answer = ask(home, ListEntries(path, limit))
    if as_json:
        echo_json(answer)
        return
    moment = now()
    for entry in answer.entries:
        click.echo(describe_entry(entry, moment))
        for note in entry.notes:
            click.secho(f"        {note}", fg="yellow")
    if not answer.entries:
        click.echo("The history has no entries yet.")
