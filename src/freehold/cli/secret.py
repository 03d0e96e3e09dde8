"""`freehold secret`."""

import json
import sys
from datetime import UTC, datetime

import click

from freehold.cli._options import home_option, json_option
from freehold.home import Home


@click.group()
def command() -> None:
    """Keep keys where no agent can read them. They are encrypted, and never shown again.

    \b
    Examples:
      freehold secret set openai
      pass show openai | freehold secret set openai
      freehold secret list
    """


@command.command("set")
@click.argument("name")
@home_option
def set_secret(name: str, home: Home) -> None:
    """Keep a secret: typed at a hidden prompt, or read from standard input.

    Name it in freehold.toml as `key = "secret:NAME"`.

    \b
    Example:
      freehold secret set openai
    """
    from freehold.egress.vault import Vault, check_name

    check_name(name)
    if sys.stdin.isatty():
        value = click.prompt(f"Value of {name}", hide_input=True, confirmation_prompt=False)
    else:
        value = sys.stdin.read(128 * 1024).removesuffix("\n").removesuffix("\r")
    Vault(home.vault).put(name, value)
    _note(home, "secret.set", name)
    click.echo(f'kept; name it in freehold.toml as "secret:{name}"')


@command.command("list")
@home_option
@json_option
def list_secrets(home: Home, as_json: bool) -> None:
    """The names of the secrets, when each was set and last used.

    \b
    Example:
      freehold secret list --json
    """
    from freehold.egress.vault import Vault

    kept = Vault(home.vault).list()
    if as_json:
        click.echo(json.dumps([{"name": each.name, "set_at": each.set_at, "used_at": each.used_at} for each in kept]))
        return
    if not kept:
        click.echo("no secrets; keep one with: freehold secret set NAME")
    width = max((len(each.name) for each in kept), default=0)
    for each in kept:
        used = "never used" if each.used_at is None else f"used {_day(each.used_at)}"
        click.echo(f"  {each.name:<{width}}  set {_day(each.set_at)}  {used}")


@command.command("remove")
@click.argument("name")
@home_option
def remove_secret(name: str, home: Home) -> None:
    """Forget a secret. Whatever used it is refused from then on.

    \b
    Example:
      freehold secret remove openai
    """
    from freehold.egress.vault import Vault

    Vault(home.vault).remove(name)
    _note(home, "secret.removed", name)
    click.echo(f"{name} is forgotten")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _note(home: Home, kind: str, name: str) -> None:
    from freehold.home import ensure_private_folder
    from freehold.timeline import Timeline

    ensure_private_folder(home.root)
    with Timeline(home.timeline) as timeline:
        timeline.append(kind, {"name": name}, who="owner")
