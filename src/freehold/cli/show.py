"""`freehold show`."""

import base64
import json
import sys

import click

from freehold.cli._history import ask, entry_number
from freehold.cli._options import home_option, json_option
from freehold.home import Home


@click.command()
@click.argument("what", metavar="ENTRY:PATH")
@home_option
@json_option
def command(home: Home, what: str, as_json: bool) -> None:
    """Print a file as it was in ENTRY, byte for byte.

    \b
    Examples:
      freehold show 12:workspace/src/app.py
      freehold show 12:workspace/logo.png > logo.png
    """
    entry, colon, path = what.partition(":")
    if not colon or not path:
        raise click.BadParameter(f"'{what}' is not of the form ENTRY:PATH")
    question = {"entry": entry_number(entry), "path": path}
    answer = ask(home, "history.show", question)
    if as_json:
        click.echo(json.dumps(answer))
        return
    if "base64" not in answer:
        click.echo(f"{path} was {answer['what']}; nothing of it was stored", err=True)
        return
    at = 0
    while True:
        data = base64.b64decode(answer["base64"])
        sys.stdout.buffer.write(data)
        at += len(data)
        if not answer["more"] or not data:
            break
        answer = ask(home, "history.show", question | {"offset": at})
    sys.stdout.buffer.flush()
