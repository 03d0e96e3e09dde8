"""`freehold version`."""

import platform
from typing import TypedDict

import click

from freehold import __version__
from freehold.cli._json_output import JsonOutput, echo_json, json_option


class ShownVersion(TypedDict):
    freehold: str
    python: str


@click.command()
@json_option(JsonOutput(ShownVersion))
def command(as_json: bool) -> None:
    """Print the version of Freehold and of Python.

    \b
    Example:
      freehold version --json
    """
    if as_json:
        echo_json(ShownVersion(freehold=__version__, python=platform.python_version()))
    else:
        click.echo(f"freehold {__version__} (Python {platform.python_version()})")
