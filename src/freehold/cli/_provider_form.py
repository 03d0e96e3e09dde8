"""What `freehold models add` shows and asks."""

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.egress.models.known_providers import KnownProvider
    from freehold.egress.models.provider_check import ProviderCheck
    from freehold.egress.models.provider_setup import ProviderDraft
    from freehold.manifest import Manifest
    from freehold.observe.secrets import Secret

MAX_SHOWN = 40
"""Models that are listed to choose from."""


def show_offers(manifest: "Manifest") -> None:
    """Print what was found on this machine, and all providers."""
    from freehold.egress.models.discovery import find_environment_keys, find_local_servers
    from freehold.egress.models.known_providers import KNOWN_PROVIDERS
    from freehold.egress.models.provider import read_providers
    from freehold.egress.models.upstream import UpstreamPool

    connected = list(read_providers(manifest.models).values())
    servers = asyncio.run(find_local_servers(connected, UpstreamPool()))
    keys = find_environment_keys(os.environ, connected)
    if keys or servers:
        click.echo("Found on this machine, and not used until you add it:")
        for found in keys:
            click.echo(f"  freehold models add {found.known.name} --env {found.variable}")
        for found in servers:
            click.echo(f"  freehold models add {found.known.name:<12} {found.words}")
        click.echo()
    click.echo("Providers:")
    for known in KNOWN_PROVIDERS:
        click.echo(f"  {known.name:<12} {known.title:<22} {known.note or known.key_page or known.base_url}")
    click.echo("\nTo connect one: freehold models add NAME")


def read_key(known: "KnownProvider", variable: str | None, file: str | None, *, has_key: bool) -> "Secret | None":
    """None for a provider that needs no key, or that keeps the one it has."""
    from freehold.observe.secrets import Secret

    if variable is not None:
        if not os.environ.get(variable):
            raise FreeholdError("models.no-key", f"{variable} is not set", hint=f"export {variable}=… and try again")
        return Secret(os.environ[variable])
    if file is not None:
        return Secret(Path(file).read_text())
    if known.is_local:
        return None
    may_be_empty = has_key or known.name == "custom"
    if not sys.stdin.isatty():
        text = sys.stdin.read(128 * 1024).strip()
        return Secret(text) if text or not may_be_empty else None
    where = known.note or (f"Its keys are issued at {known.key_page}" if known.key_page else "")
    if where:
        click.echo(where)
    words = f"Key of {known.title}" + (" (empty: the one it has)" if has_key else "")
    text = click.prompt(words, hide_input=True, default="" if may_be_empty else None, show_default=False)
    return Secret(text) if text else None


async def try_draft(draft: "ProviderDraft", kept: "Secret | None") -> "ProviderCheck":
    from freehold.egress.models.provider_check import try_provider
    from freehold.egress.models.upstream import UpstreamPool

    return await try_provider(draft.as_provider(), draft.key_to_send() or kept, UpstreamPool(), draft.model)


def report_check(name: str, check: "ProviderCheck") -> None:
    """Raises `models.refused` when the provider does not accept the key."""
    if not check.ok:
        said = f" It says: {check.said}" if check.said else ""
        raise FreeholdError(
            "models.refused",
            f"{name} is not connected. {check.message}.{said}",
            hint="Check the key and the address; --no-test connects it all the same",
        )
    click.secho(check.message, fg="green")


def choose_model(check: "ProviderCheck") -> str | None:
    """The only model, or the one that the owner types; by default the one that is suggested. None leaves it to the agent."""
    if len(check.models) == 1:
        return check.models[0]
    if not check.models or not sys.stdin.isatty():
        return check.suggested
    for each in check.offered[:MAX_SHOWN]:
        price = "" if each.input_price is None else f"  ${each.input_price:g} in, ${each.output_price or 0:g} out / 1M"
        window = "" if each.window is None else f"  {each.window:,} tokens"
        click.echo(f"  {each.name}{price}{window}")
    if len(check.offered) > MAX_SHOWN:
        click.echo(f"  and {len(check.offered) - MAX_SHOWN} more")
    if check.suggested is not None:
        words = "Model (- for the choice of the agent)"
        chosen = str(click.prompt(words, default=check.suggested)).strip()
        return None if chosen == "-" else chosen
    return str(click.prompt("Model (empty: the agent chooses)", default="", show_default=False)).strip() or None


def find_kept_key(home: Home, manifest: "Manifest", draft: "ProviderDraft") -> "Secret | None":
    """The key that a provider of this name has already, for the same place only."""
    from freehold.egress.models.keys import Keys
    from freehold.egress.models.provider import read_providers
    from freehold.egress.vault import Vault

    existing = read_providers(manifest.models).get(draft.name)
    if existing is None or existing.place != draft.as_provider().place:
        return None
    return Keys(Vault(home.vault), os.environ).find(existing)
