"""`freehold version`."""

import json
import platform

import click

from freehold import __version__
from freehold.cli._options import json_option


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Print the version of Freehold and of Python.

    \b
    Example:
      freehold version --json
    """
    if as_json:
        click.echo(json.dumps({"freehold": __version__, "python": platform.python_version()}))
    else:
        click.echo(f"freehold {__version__} (Python {platform.python_version()})")
