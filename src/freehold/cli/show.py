"""`freehold show`."""

import base64
import sys
from dataclasses import replace

import click

from freehold.cli._history import ask, read_entry_number
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.history.calls import ShowFile
from freehold.home import Home


@click.command()
@click.argument("what", metavar="ENTRY:PATH")
@home_option
@json_option(JsonOutput("freehold.history.calls:FileVersion"))
def command(home: Home, what: str, as_json: bool) -> None:
    """Print a file as it was in ENTRY, byte for byte.

    \b
    Examples:
      freehold show 12:workspace/src/app.py
      freehold show 12:workspace/logo.png > logo.png
    """
    entry, colon, path = what.partition(":")
    if not colon or not path:
        raise click.BadParameter(f"'{what}' does not have the form ENTRY:PATH")
    call = ShowFile(read_entry_number(entry), path)
    answer = ask(home, call)
    if as_json:
        echo_json(answer)
        return
    if answer.base64 is None:
        click.echo(f"{path} was {answer.what}. Its content was not stored", err=True)
        return
    at = 0
    while True:
        data = base64.b64decode(answer.base64 or "")
        sys.stdout.buffer.write(data)
        at += len(data)
        if not answer.more or not data:
            break
        answer = ask(home, replace(call, offset=at))
    sys.stdout.buffer.flush()
