"""`freehold preview`."""

import json
import os
import secrets
import time
from typing import TYPE_CHECKING

import click

from freehold.cli._options import home_option, json_option
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.client.answers import PreviewPort

LISTING = 60.0


def _port(ctx: click.Context, parameter: click.Parameter, given: str | None) -> int | None:
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and 1 <= int(given[:9]) <= 65535):
        raise click.BadParameter(f"'{given}' is no port: give a number from 1 to 65535, freehold preview lists them")
    return int(given)


@click.command()
@click.argument("port", required=False, callback=_port)
@click.option("--path", default="/", show_default=True, metavar="PATH", help="Where to go there.")
@click.option("--hours", default=12.0, show_default=True, type=click.FloatRange(0.01, 720), help="How long it shows.")
@home_option
@json_option
def command(port: int | None, path: str, hours: float, home: Home, as_json: bool) -> None:
    """Look at what runs in the computer: list its ports, or get an address for one.

    The address opens in one browser, once, within half a minute. What it shows ends with the token that was made for
    it, which freehold token lists.

    \b
    Examples:
      freehold preview
      freehold preview 5173
    """
    from freehold.client import Freehold
    from freehold.identity.tokens import Tokens
    from freehold.manifest import load_manifest

    manifest = load_manifest(home.manifest, os.environ, home=home.root).manifest
    if not home.identity.exists():
        raise FreeholdError("keeper.not-running", "Freehold has never run here", hint="freehold up")
    name = f"preview-{secrets.token_hex(4)}" if port is None else f"preview-{port}-{secrets.token_hex(4)}"
    life = LISTING if port is None else hours * 3600
    with Tokens(home.identity, owner=manifest.owner.did) as tokens:
        for old in tokens.list():
            if old.name.startswith("preview-") and old.expires is not None and old.expires < time.time():
                tokens.revoke(old.name)
        _, secret = tokens.create(name, ("read", "terminal"), time.time() + life)
        kept = False
        try:
            with Freehold.sync(f"http://localhost:{manifest.gateway.port}", token=secret) as client:
                if port is None:
                    _list(client.preview.ports(), as_json)
                    return
                opened = client.preview.open(port, path=path)
                listening = any(one.port == port for one in client.preview.ports())
            kept = True
        finally:
            if not kept:
                tokens.revoke(name)
    if as_json:
        click.echo(
            json.dumps({"address": opened.address, "origin": opened.origin, "token": name, "listening": listening})
        )
        return
    if not listening:
        click.secho(f"Nothing listens on port {port} in the computer yet", fg="yellow", err=True)
    click.echo(opened.address)
    click.echo(f"Opens once, within half a minute. freehold token revoke {name} ends it", err=True)


def _list(ports: "tuple[PreviewPort, ...]", as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([one.model_dump() for one in ports]))
        return
    for one in ports:
        click.echo(f"{one.port:<6} {one.process or '–':<24} {one.service or ''}".rstrip())
    if not ports:
        click.echo("Nothing listens in the computer.")
