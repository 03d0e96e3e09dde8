"""`freehold preview`."""

import secrets
import time
from typing import TYPE_CHECKING, TypedDict

import click

from freehold.cli._home_files import read_manifest
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.client.models import PreviewPort

LIST_TOKEN_LIFETIME = 60.0


def _parse_port(ctx: click.Context, parameter: click.Parameter, given: str | None) -> int | None:
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal() and 1 <= int(given[:9]) <= 65535):
        raise click.BadParameter(f"'{given}' is not a port number from 1 to 65535. To list the ports: freehold preview")
    return int(given)


class OpenedPreview(TypedDict):
    """`address` opens once; `token` is the name of the token that ends the preview when it is revoked."""

    address: str
    origin: str
    token: str
    listening: bool


@click.command()
@click.argument("port", required=False, callback=_parse_port)
@click.option("--path", default="/", show_default=True, metavar="PATH", help="The path to open.")
@click.option(
    "--hours",
    default=12.0,
    show_default=True,
    type=click.FloatRange(0.01, 720),
    help="How long the preview can be used.",
)
@home_option
@json_option(
    JsonOutput(OpenedPreview, when="PORT"),
    JsonOutput("freehold.client.models:PreviewPort", "list", when="no PORT"),
)
def command(port: int | None, path: str, hours: float, home: Home, as_json: bool) -> None:
    """List the ports in the computer, or get an address to open one.

    The address opens once, in one browser, within 30 seconds. The preview then works until the token that was created
    for it expires or is revoked; see freehold token list.

    \b
    Examples:
      freehold preview
      freehold preview 5173
    """
    from freehold.client import Freehold
    from freehold.identity.tokens import ApiTokens

    manifest = read_manifest(home)
    if not home.identity.exists():
        raise FreeholdError(
            "keeper.not-running", f"Freehold has never run in {home.root}", hint="Start it: freehold up"
        )
    name = f"preview-{secrets.token_hex(4)}" if port is None else f"preview-{port}-{secrets.token_hex(4)}"
    lifetime = LIST_TOKEN_LIFETIME if port is None else hours * 3600
    with ApiTokens(home.identity, owner=manifest.owner.did) as tokens:
        for old in tokens.list():
            if old.name.startswith("preview-") and old.expires is not None and old.expires < time.time():
                tokens.revoke(old.name)
        _, secret = tokens.create(name, ("read", "terminal"), time.time() + lifetime)
        opened_once = False
        try:
            with Freehold.sync(f"http://localhost:{manifest.gateway.port}", token=secret) as client:
                if port is None:
                    _list(client.preview.ports(), as_json)
                    return
                opened = client.preview.open(port, path=path)
                listening = any(one.port == port for one in client.preview.ports())
            opened_once = True
        finally:
            if not opened_once:
                tokens.revoke(name)
    if as_json:
        echo_json(OpenedPreview(address=opened.address, origin=opened.origin, token=name, listening=listening))
        return
    if not listening:
        click.secho(f"No program listens on port {port} in the computer yet", fg="yellow", err=True)
    click.echo(opened.address)
    click.echo(f"The address opens once, within 30 seconds. To end the preview: freehold token revoke {name}", err=True)


def _list(ports: "tuple[PreviewPort, ...]", as_json: bool) -> None:
    if as_json:
        echo_json([one.model_dump() for one in ports])
        return
    for one in ports:
        click.echo(f"{one.port:<6} {one.process or '–':<24} {one.service or ''}".rstrip())
    if not ports:
        click.echo("No program listens on a port in the computer.")
