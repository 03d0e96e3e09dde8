"""`freehold secret`."""

import sys
from datetime import UTC, datetime

import click

from freehold.cli._completion import offer, read_secret_names
from freehold.cli._home_files import record_act
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.home import Home


@click.group()
def command() -> None:
    """Store secrets, such as API keys, out of reach of agents.

    Secrets are encrypted and never shown again.

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
    """Store a secret, typed in or read from standard input.

    What you type is hidden. Refer to the secret in freehold.toml as `key = "secret:NAME"`.

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
    Vault(home.vault).set(name, value)
    record_act(home, "secret.set", {"name": name})
    click.echo(f'Stored {name}. Refer to it in freehold.toml as "secret:{name}"')


@command.command("list")
@home_option
@json_option(JsonOutput("freehold.egress.vault:SecretInfo", "list"))
def list_secrets(home: Home, as_json: bool) -> None:
    """List the secrets: name, time set and time last used.

    \b
    Example:
      freehold secret list --json
    """
    from freehold.egress.vault import Vault

    secrets = Vault(home.vault).list()
    if as_json:
        echo_json(secrets)
        return
    if not secrets:
        click.echo("There are no secrets. Store one: freehold secret set NAME")
    width = max((len(secret.name) for secret in secrets), default=0)
    for secret in secrets:
        used = "never used" if secret.used_at is None else f"used {_day(secret.used_at)}"
        click.echo(f"  {secret.name:<{width}}  set {_day(secret.set_at)}  {used}")


@command.command("remove")
@click.argument("name", shell_complete=offer(read_secret_names))
@home_option
def remove_secret(name: str, home: Home) -> None:
    """Remove a secret. Requests that need it fail from then on.

    \b
    Example:
      freehold secret remove openai
    """
    from freehold.egress.vault import Vault

    Vault(home.vault).remove(name)
    record_act(home, "secret.removed", {"name": name})
    click.echo(f"Removed {name}")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
