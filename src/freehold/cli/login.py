"""`freehold login`."""

import json
import re
import secrets
import socket
from typing import cast

import click

from freehold.cli._options import json_option

SCOPES = ("read", "prompt", "files", "terminal", "history", "admin")
USUAL = ("read", "prompt", "files", "history")


@click.command()
@click.argument("url", required=False)
@click.option("--name", metavar="NAME", help="What the token is called there.  [default: this machine's name]")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    default=USUAL,
    show_default=True,
    help="What the token may do; may be given several times.",
)
@click.option("--no-browser", is_flag=True, help="Only show the address; open it on any machine.")
@click.option("--list", "show_list", is_flag=True, help="Show the Freeholds you have tokens for.")
@click.option("--forget", is_flag=True, help="End the token that is stored here for URL, and remove it.")
@json_option
def command(
    url: str | None,
    name: str | None,
    scopes: tuple[str, ...],
    no_browser: bool,
    show_list: bool,
    forget: bool,
    as_json: bool,
) -> None:
    """Get a token for a Freehold elsewhere: you allow it in a browser, and no password is typed anywhere.

    The token is kept in the keyring of your system, or else in a file that only you can read. It lasts 90 days.

    \b
    Examples:
      freehold login https://agent.example.com
      freehold login http://localhost:3000 --name backup --scope read
      freehold login --list
      freehold login https://agent.example.com --forget
    """
    if show_list:
        if url is not None or forget:
            raise click.UsageError("--list takes no address")
        _list(as_json)
    elif url is None:
        raise click.UsageError("Which Freehold? Give its address, such as https://agent.example.com")
    elif forget:
        _forget(url)
    else:
        _login(url, name or _usual_name(), scopes, no_browser=no_browser, as_json=as_json)


def _login(url: str, name: str, scopes: tuple[str, ...], *, no_browser: bool, as_json: bool) -> None:
    from freehold.client.answers import Scope
    from freehold.client.device import ask_for_token, wait_for_token
    from freehold.client.stored import credentials_file, store_credentials

    waiting = ask_for_token(url, name, cast("tuple[Scope, ...]", scopes))
    # To the terminal even with --json: the owner has to read it.
    click.echo("Compare this code with the one in your browser, and allow it there:", err=True)
    click.secho(f"\n    {waiting.code}\n", bold=True, err=True)
    click.echo(f"If no browser opens: {waiting.page}", err=True)
    if not no_browser:
        click.launch(waiting.page)
    token = wait_for_token(waiting)
    where = store_credentials(waiting.url, name, token)
    if as_json:
        click.echo(json.dumps({"url": waiting.url, "name": name, "scopes": list(scopes), "where": where}))
    else:
        place = "your keyring" if where == "keyring" else str(credentials_file())
        click.echo(f"Signed in to {waiting.url} as {name}; the token is in {place}")


def _list(as_json: bool) -> None:
    from freehold.client.stored import list_credentials

    stored = list_credentials()
    if as_json:
        click.echo(json.dumps([{"url": one.url, "name": one.name, "where": one.where} for one in stored]))
    elif not stored:
        click.echo("There are no tokens here. Get one with: freehold login URL")
    for one in () if as_json else stored:
        click.echo(f"{one.url}  {one.name}  ({one.where})")


def _forget(url: str) -> None:
    from freehold.client import Freehold
    from freehold.client.stored import find_credentials, forget_credentials
    from freehold.errors import FreeholdError

    token = find_credentials(url)
    ended = False
    if token is not None:
        try:
            with Freehold.sync(url, token=token, timeout=5) as home:
                home.sign_out()
            ended = True
        except FreeholdError as error:
            click.echo(f"It could not be ended there: {error.message}", err=True)
            click.echo("If it still lives, end it on its own machine: freehold token revoke NAME", err=True)
    if forget_credentials(url):
        click.echo(f"Forgotten here{' and ended there' if ended else ''}: {url}")
    else:
        click.echo(f"There was no token for {url}")


def _usual_name() -> str:
    """This machine's name, with an end of its own: two tokens cannot share a name."""
    host = re.sub(r"[^a-z0-9-]+", "-", socket.gethostname().partition(".")[0].lower()).strip("-") or "computer"
    return f"{host[:30]}-{secrets.token_hex(2)}"
