"""`freehold token`."""

import os
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

import click

from freehold.cli._completion import offer, read_token_names
from freehold.cli._home_files import record_act
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option, require_home
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.identity.tokens import SCOPES, ApiToken, ApiTokens, Scope
from freehold.strict_json import EpochSeconds

_DURATION = re.compile(r"([1-9][0-9]{0,4})([mhdw])")
_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True)
class ListedToken:
    """`expires` is null for a token without an end, `used` for one that was never used."""

    name: str
    scopes: tuple[str, ...]
    created: EpochSeconds
    expires: EpochSeconds | None
    used: EpochSeconds | None


@dataclass(frozen=True)
class CreatedToken(ListedToken):
    """`token` is the secret. It is not shown again."""

    token: str


@click.group()
def command() -> None:
    """Create, list and revoke API tokens.

    Scripts and the Python client sign in with an API token.

    \b
    Example:
      freehold token create backup --scope read --scope files --expires 30d
    """


@command.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(SCOPES),
    help="What the token may do. Repeat it for several scopes. admin includes all scopes.",
)
@click.option(
    "--expires",
    default="90d",
    show_default=True,
    metavar="DURATION|DATE|never",
    help="For example 12h, 30d or 2027-01-31.",
)
@home_option
@json_option(JsonOutput(CreatedToken))
def create(name: str, scopes: tuple[str, ...], expires: str, home: Home, as_json: bool) -> None:
    """Create a token and print it once. Only its hash is stored.

    \b
    Examples:
      freehold token create backup --scope read --scope files --expires 30d
      export FREEHOLD_TOKEN=$(freehold token create ci --scope prompt --expires 2027-01-31)
    """
    until = read_expiry(expires, time.time())
    with _open(home) as tokens:
        token, secret = tokens.create(name, cast("tuple[Scope, ...]", scopes), until)
        record_act(home, "identity.token_created", {"name": name, "scopes": sorted(scopes)})
    if as_json:
        echo_json(CreatedToken(**vars(_describe(token)), token=secret))
        return
    click.echo(secret)
    click.secho(f"  {name}: {', '.join(sorted(scopes))}; {_until(token)}. It is not shown again.", dim=True, err=True)


@command.command(name="list")
@home_option
@json_option(JsonOutput(ListedToken, "list"))
def list_tokens(home: Home, as_json: bool) -> None:
    """List all tokens with their scopes, expiry and last use.

    \b
    Example:
      freehold token list
    """
    with _open(home) as tokens:
        found = tokens.list()
    if as_json:
        echo_json([_describe(token) for token in found])
    elif not found:
        click.echo("There are no tokens. Create one: freehold token create NAME --scope read")
    else:
        width = max(len(token.name) for token in found)
        for token in found:
            used = f"used {_moment(token.used)}" if token.used else "never used"
            click.echo(f"{token.name:<{width}}  {' '.join(sorted(token.scopes))}  {_until(token)}, {used}")


@command.command()
@click.argument("name", shell_complete=offer(read_token_names))
@home_option
def revoke(name: str, home: Home) -> None:
    """Revoke a token. Its open connections are closed within a second.

    \b
    Example:
      freehold token revoke backup
    """
    with _open(home) as tokens:
        names = [token.name for token in tokens.list()]
        if not tokens.revoke(name):
            known = f"The tokens are: {', '.join(names)}" if names else "There are no tokens"
            raise FreeholdError("token.unknown", f"There is no token named {name}", hint=known)
        record_act(home, "identity.token_revoked", {"name": name})
    click.echo(f"Revoked {name}")


def read_expiry(text: str, now: float) -> float | None:
    """A duration from now, a date (its end in UTC), a date with a time, or never."""
    if text == "never":
        return None
    if found := _DURATION.fullmatch(text):
        return now + int(found[1]) * _SECONDS[found[2]]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise FreeholdError(
            "token.expiry",
            f"{text!r} is not a duration or a date",
            hint="Use for example 12h, 30d, 2027-01-31 or never",
        ) from None
    if len(text) == len("2027-01-31"):
        moment = moment.replace(hour=23, minute=59, second=59)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _open(home: Home) -> ApiTokens:
    from freehold.manifest import load_manifest

    require_home(home)
    return ApiTokens(home.identity, owner=load_manifest(home.manifest, os.environ).manifest.owner.did)


def _describe(token: ApiToken) -> ListedToken:
    return ListedToken(token.name, tuple(sorted(token.scopes)), token.created, token.expires, token.used)


def _until(token: ApiToken) -> str:
    if token.expires is None:
        return "never expires"
    return f"{'expires' if token.expires > time.time() else 'expired'} {_moment(token.expires)}"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
