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
    "--test", "test", is_flag=True, help="Ask each provider for its list of models with its key. This is free."
)
@home_option
@json_option
def command(home: Home, as_json: bool, test: bool) -> None:
    """List the model providers, or show how to connect one.

    Also shows which keys are missing. Exits 1 when a tested provider fails or the manifest has errors.

    \b
    Examples:
      freehold models
      freehold models --test
    """
    from freehold.egress.models.connect_help import connect_help
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
        click.echo(
            "Freehold does not use the manifest until this is fixed. To check it again: freehold check\n", err=True
        )
    providers = read_providers(loaded.manifest.models)
    checks = {each.name: asyncio.run(_check(each, keys)) for each in providers.values()} if test else {}
    rows: list[dict[str, Any]] = [
        {
            "name": each.name,
            "kind": each.kind,
            "address": each.url,
            "model": each.model,
            "inside": each.inside,
            "problem": problem(each),
            **({"test": checks[each.name]} if test else {}),
        }
        for each in providers.values()
    ]
    if as_json:
        click.echo(json.dumps(rows))
    else:
        _print(rows, connect_help())
    if loaded.errors or not all(check["ok"] for check in checks.values()):
        sys.exit(1)


async def _check(provider: "Provider", keys: "Keys") -> dict[str, Any]:
    from freehold.egress.models.provider_check import check_provider
    from freehold.egress.models.upstream import UpstreamPool
    from freehold.errors import FreeholdError

    try:
        check = await check_provider(provider, keys, UpstreamPool())
    except FreeholdError as error:
        return {"ok": False, "words": error.message, "milliseconds": None, "models": []}
    return {"ok": check.ok, "words": check.message, "milliseconds": check.milliseconds, "models": list(check.models)}


def _print(rows: list[dict[str, Any]], help_text: str) -> None:
    if not rows:
        click.echo(help_text, nl=False)
    for row in rows:
        click.secho(f"  {row['name']}", bold=True, nl=False)
        click.echo(f"  {row['kind']} at {row['address']}" + (f", model {row['model']}" if row["model"] else ""))
        if row["problem"]:
            click.secho(f"    {row['problem']}", fg="red")
        if "test" in row:
            click.secho(f"    {row['test']['words']}", fg="green" if row["test"]["ok"] else "red")
