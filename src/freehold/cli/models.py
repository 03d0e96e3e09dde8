"""`freehold models`."""

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from freehold.cli._options import home_option, json_option
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.egress.models.keys import Keys
    from freehold.egress.models.provider import Provider


@click.command()
@click.option(
    "--test", "try_out", is_flag=True, help="Ask each for its list of models, with its key; this costs nothing."
)
@home_option
@json_option
def command(home: Home, as_json: bool, try_out: bool) -> None:
    """Show the model providers of freehold.toml and whether their keys are there, or how to connect one.

    Exits 1 when one that was tested does not answer as it should, or the manifest has mistakes.

    \b
    Examples:
      freehold models
      freehold models --test
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

    loaded = load_manifest(home.manifest, os.environ, home=home.root)
    for mistake in loaded.errors:
        click.secho(f"{mistake.place}  {mistake.code}  {mistake.message}", fg="red", err=True)
        if mistake.hint:
            click.echo(f"    {mistake.hint}", err=True)
    if loaded.errors:
        click.echo("Freehold does not take the manifest before this is mended; freehold check looks again\n", err=True)
    providers = read_providers(loaded.manifest.models)
    trials = {each.name: asyncio.run(_try(each, keys)) for each in providers.values()} if try_out else {}
    rows: list[dict[str, Any]] = [
        {
            "name": each.name,
            "kind": each.kind,
            "address": each.url,
            "model": each.model,
            "inside": each.inside,
            "problem": problem(each),
            **({"test": trials[each.name]} if try_out else {}),
        }
        for each in providers.values()
    ]
    if as_json:
        click.echo(json.dumps(rows))
    else:
        _print(rows, how_to_connect())
    if loaded.errors or not all(trial["ok"] for trial in trials.values()):
        sys.exit(1)


async def _try(provider: "Provider", keys: "Keys") -> dict[str, Any]:
    from freehold.egress.models.trial import try_provider
    from freehold.egress.models.upstream import Upstreams
    from freehold.errors import FreeholdError

    try:
        trial = await try_provider(provider, keys, Upstreams())
    except FreeholdError as error:
        return {"ok": False, "words": error.message, "milliseconds": None, "models": []}
    return {"ok": trial.ok, "words": trial.words, "milliseconds": trial.milliseconds, "models": list(trial.models)}


def _print(rows: list[dict[str, Any]], help: str) -> None:
    if not rows:
        click.echo(help, nl=False)
    for row in rows:
        click.secho(f"  {row['name']}", bold=True, nl=False)
        click.echo(f"  {row['kind']} at {row['address']}" + (f", model {row['model']}" if row["model"] else ""))
        if row["problem"]:
            click.secho(f"    {row['problem']}", fg="red")
        if "test" in row:
            click.secho(f"    {row['test']['words']}", fg="green" if row["test"]["ok"] else "red")
