"""`freehold models`."""

import json
import os

import click

from freehold.cli._options import home_option, json_option
from freehold.home import Home


@click.command()
@home_option
@json_option
def command(home: Home, as_json: bool) -> None:
    """Show the model providers of freehold.toml and whether their keys are there, or how to connect one.

    \b
    Example:
      freehold models
    """
    from freehold.egress.models.connecting import how_to_connect
    from freehold.egress.models.keys import Keys
    from freehold.egress.models.provider import Provider, read_providers
    from freehold.egress.vault import Vault
    from freehold.errors import FreeholdError
    from freehold.manifest import load_manifest

    keys = Keys(Vault(home.vault), os.environ)

    def problem(provider: Provider) -> str | None:
        try:
            keys.find(provider)
        except FreeholdError as error:
            return f"{error.message}. {error.hint}"
        return None

    providers = read_providers(load_manifest(home.manifest, os.environ, home=home.root).manifest.models)
    rows = [
        {
            "name": each.name,
            "kind": each.kind,
            "address": each.url,
            "model": each.model,
            "inside": each.inside,
            "problem": problem(each),
        }
        for each in providers.values()
    ]
    if as_json:
        click.echo(json.dumps(rows))
        return
    if not rows:
        click.echo(how_to_connect(), nl=False)
    for row in rows:
        click.secho(f"  {row['name']}", bold=True, nl=False)
        click.echo(f"  {row['kind']} at {row['address']}" + (f", model {row['model']}" if row["model"] else ""))
        if row["problem"]:
            click.secho(f"    {row['problem']}", fg="red")
