"""`freehold login`."""

import re
import secrets
import socket
from typing import TypedDict, cast

import click

from freehold.cli._json_output import JsonOutput, echo_json, json_option

SCOPES = (
    "read",
    "prompt",
    "files",
    "terminal",
    "history",
    "beads",
    "pods",
    "memory",
    "events",
    "orchestrator",
    "routines",
    "admin",
)
DEFAULT_SCOPES = ("read", "prompt", "files", "history")


class ListedLogin(TypedDict):
    """A stored token of another Freehold, and where it is stored."""

    url: str
    name: str
    where: str


class StoredLogin(ListedLogin):
    scopes: list[str]


@click.command()
@click.argument("url", required=False)
@click.option("--name", metavar="NAME", help="The name of the token. [default: the name of this machine]")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    default=DEFAULT_SCOPES,
    show_default=True,
    help="What the token may do. Repeat it for several scopes.",
)
@click.option("--no-browser", is_flag=True, help="Print the address and do not open a browser.")
@click.option("--list", "show_list", is_flag=True, help="List the Freeholds that you have tokens for.")
@click.option("--forget", is_flag=True, help="Revoke the stored token for URL and remove it.")
@json_option(JsonOutput(StoredLogin), JsonOutput(ListedLogin, "list", when="--list"))
def command(
    url: str | None,
    name: str | None,
    scopes: tuple[str, ...],
    no_browser: bool,
    show_list: bool,
    forget: bool,
    as_json: bool,
) -> None:
    """Get an API token for a Freehold, by browser.

    You allow the token in a browser where you are signed in. The token is stored in the keyring of your system, or else in a file that only you can read. It expires after 90
    days.

    \b
    Examples:
      freehold login https://agent.example.com
      freehold login http://localhost:3000 --name backup --scope read
      freehold login --list
      freehold login https://agent.example.com --forget
    """
    if show_list:
        if url is not None or forget:
            raise click.UsageError("--list takes no URL")
        _list(as_json)
    elif url is None:
        raise click.UsageError("Give the URL of a Freehold, such as https://agent.example.com")
    elif forget:
        _forget(url)
    else:
        _login(url, name or _default_name(), scopes, no_browser=no_browser, as_json=as_json)


def _login(url: str, name: str, scopes: tuple[str, ...], *, no_browser: bool, as_json: bool) -> None:
    from freehold.client.device_login import request_token, wait_for_token
    from freehold.client.models import Scope
    from freehold.client.stored_tokens import store_token, tokens_file

    login = request_token(url, name, cast("tuple[Scope, ...]", scopes))
    # On stderr, also with --json, because the owner must read it.
    click.echo("Check that your browser shows this code, and allow it there:", err=True)
    click.secho(f"\n    {login.code}\n", bold=True, err=True)
    click.echo(f"If no browser opens, open: {login.page}", err=True)
    if not no_browser:
        click.launch(login.page)
    token = wait_for_token(login)
    where = store_token(login.url, name, token)
    if as_json:
        echo_json(StoredLogin(url=login.url, name=name, scopes=list(scopes), where=where))
    else:
        place = "your keyring" if where == "keyring" else str(tokens_file())
        click.echo(f"Got the token {name} for {login.url}; it is stored in {place}")


def _list(as_json: bool) -> None:
    from freehold.client.stored_tokens import list_stored_tokens

    stored = list_stored_tokens()
    if as_json:
        echo_json([ListedLogin(url=one.url, name=one.name, where=one.where) for one in stored])
    elif not stored:
        click.echo("There are no stored tokens. Get one: freehold login URL")
    for one in () if as_json else stored:
        click.echo(f"{one.url}  {one.name}  ({one.where})")


def _forget(url: str) -> None:
    from freehold.client import Freehold
    from freehold.client.stored_tokens import find_stored_token, remove_stored_token
    from freehold.errors import FreeholdError

    token = find_stored_token(url)
    ended = False
    if token is not None:
        try:
            with Freehold.sync(url, token=token, timeout=5) as home:
                home.sign_out()
            ended = True
        except FreeholdError as error:
            click.echo(f"The token could not be revoked: {error.message}", err=True)
            click.echo("Revoke it on that machine: freehold token revoke NAME", err=True)
    if remove_stored_token(url):
        click.echo(f"Removed the token for {url}{' and revoked it there' if ended else ''}")
    else:
        click.echo(f"There is no stored token for {url}")


def _default_name() -> str:
    """The name of this machine with a random suffix, because the names of tokens are unique."""
    host = re.sub(r"[^a-z0-9-]+", "-", socket.gethostname().partition(".")[0].lower()).strip("-") or "computer"
    return f"{host[:30]}-{secrets.token_hex(2)}"
