"""`freehold channels`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from freehold.channels.contract import TELLS
from freehold.cli._home_files import read_manifest
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.client._sync.freehold import SyncFreehold
    from freehold.client.models import ApiModel

_KINDS = ("email", "matrix", "nostr", "telegram")
CHANNEL = "freehold.client.channel_models:ChannelInfo"


@contextmanager
def _open_client(home: Home) -> "Iterator[SyncFreehold]":
    """The running Freehold of this home, with a token that lasts as long as the command."""
    from freehold.cli._temporary_token import temporary_token
    from freehold.client import Freehold
    from freehold.identity.tokens import ApiTokens

    if not home.identity.exists():
        raise FreeholdError(
            "keeper.not-running", f"Freehold has never run in {home.root}", hint="Start it: freehold up"
        )
    manifest = read_manifest(home)
    with (
        ApiTokens(home.identity, owner=manifest.owner.did) as tokens,
        temporary_token(tokens, "channels", "admin") as secret,
        Freehold.sync(f"http://localhost:{manifest.gateway.port}", token=secret, timeout=60.0) as client,
    ):
        yield client


@click.group(invoke_without_command=True)
@home_option
@json_option(JsonOutput(CHANNEL, "list"))
@click.pass_context
def command(ctx: click.Context, home: Home, as_json: bool) -> None:
    """Be reached away from the control center.

    By e-mail, Telegram, Matrix, Nostr, and push messages of the browser. Push messages are turned on in the page Channels. Freehold must run.

    \b
    Examples:
      freehold channels
      freehold channels add telegram
      freehold channels pair telegram
      freehold channels add email --set server=smtp.example.com --set user=me --set sender=me@example.com
      freehold channels pair email --address me@example.com
      freehold channels test telegram
    """
    if ctx.invoked_subcommand is None:
        _list(home, as_json)


@command.command("list")
@home_option
@json_option(JsonOutput(CHANNEL, "list"))
def list_channels(home: Home, as_json: bool) -> None:
    """List the channels, with what is wrong with them.

    \b
    Example:
      freehold channels list --json
    """
    _list(home, as_json)


@command.command()
@click.argument("kind", type=click.Choice(_KINDS))
@click.option("--name", metavar="NAME", help="Its name. [default: the kind]")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting; repeat it for several.")
@click.option("--no-secret", is_flag=True, help="It has no token or password: a mail server on this machine.")
@home_option
@json_option(JsonOutput(CHANNEL))
def add(kind: str, name: str | None, settings: tuple[str, ...], no_secret: bool, home: Home, as_json: bool) -> None:
    """Add a channel. Its token or password is read without being shown, and kept in the vault.

    \b
    The settings are:
      email     server, port, security (tls, starttls, none), user, sender
      matrix    homeserver
      nostr     none, and no secret: it uses the key and the relays of [mesh]
      telegram  none

    \b
    Examples:
      freehold channels add telegram
      freehold channels add matrix --set homeserver=https://matrix.example.com
      freehold channels add email --set server=smtp.example.com --set user=me --set sender=me@example.com
    """
    given = dict(_read_setting(one) for one in settings)
    secret = None if no_secret or kind == "nostr" else click.prompt("Token or password", hide_input=True, err=True)
    with _open_client(home) as client:
        made = client.channels.add(kind, given, name=name, secret=secret)
    _show(made, as_json, f"Added {made.name}. Now pair it with you: freehold channels pair {made.name}")


@command.command()
@click.argument("channel")
@click.option(
    "--address",
    metavar="ADDRESS",
    help="Your own address, for Matrix and e-mail; for Nostr your npub, if only that may pair.",
)
@home_option
@json_option(JsonOutput("freehold.client.channel_models:ChannelPairing"))
def pair(channel: str, address: str | None, home: Home, as_json: bool) -> None:
    """Pair a channel with you, by a code for one use within ten minutes.

    \b
    Examples:
      freehold channels pair telegram
      freehold channels pair matrix --address @you:example.com
    """
    with _open_client(home) as client:
        offer = client.channels.pair(channel, address)
        if as_json:
            echo_json(offer.model_dump())
            return
        click.echo(f"{offer.words}.")
        if offer.link is not None:
            click.echo(f"Or open: {offer.link}")
        if offer.code is None:
            made = client.channels.confirm(channel, click.prompt("Code"))
            click.echo(f"{made.name} is paired with {made.owner}.")


@command.command()
@click.argument("channel")
@home_option
@json_option(JsonOutput("freehold.client.channel_models:ChannelTest"))
def test(channel: str, home: Home, as_json: bool) -> None:
    """Send a message now, and wait until the channel has it.

    \b
    Example:
      freehold channels test telegram
    """
    with _open_client(home) as client:
        sent = client.channels.test(channel)
    _show(sent, as_json, f"{channel} has taken a message for you.")


@command.command("set")
@click.argument("channel")
@click.option("--tell", "tells", multiple=True, type=click.Choice(TELLS), help="What is told; repeat it for several.")
@click.option("--quiet", metavar="HH:MM-HH:MM", help='When nothing is sent; "off" for never.')
@click.option("--zone", metavar="ZONE", help="The time zone of the quiet hours, such as Europe/Berlin.")
@click.option("--batch", type=click.IntRange(0, 86_400), help="Seconds for which news is collected.")
@click.option("--words/--no-words", default=None, help="Whether messages have the words of agents.")
@home_option
@json_option(JsonOutput(CHANNEL))
def set_preferences(
    channel: str,
    tells: tuple[str, ...],
    quiet: str | None,
    zone: str | None,
    batch: int | None,
    words: bool | None,
    home: Home,
    as_json: bool,
) -> None:
    """Change what is told through a channel, and when.

    \b
    Examples:
      freehold channels set telegram --quiet 22:00-07:00 --zone Europe/Berlin
      freehold channels set telegram --tell needs_you --tell failed --no-words
    """
    with _open_client(home) as client:
        found = next((one for one in client.channels.list() if one.name == channel), None)
        if found is None:
            raise FreeholdError(
                "channels.not-found", f"There is no channel {channel!a:.60}", hint="freehold channels list shows them"
            )
        now = found.preferences
        begin, end = now.quiet_from, now.quiet_until
        if quiet is not None:
            first, _, last = quiet.partition("-")
            begin, end = (None, None) if quiet == "off" else (first, last)
        made = client.channels.set_preferences(
            channel,
            tells=tells or now.tells,
            quiet_from=begin,
            quiet_until=end,
            zone=zone or now.zone,
            batch=now.batch if batch is None else batch,
            words=now.words if words is None else words,
        )
    _show(made, as_json, f"Changed {made.name}.")


@command.command()
@click.argument("channel")
@home_option
@json_option(JsonOutput("freehold.client.channel_models:ChannelRemoved"))
def remove(channel: str, home: Home, as_json: bool) -> None:
    """Remove a channel with its secret and everything that waits for it.

    \b
    Example:
      freehold channels remove telegram
    """
    with _open_client(home) as client:
        removed = client.channels.remove(channel)
    _show(removed, as_json, f"Removed {removed.name}.")


def _list(home: Home, as_json: bool) -> None:
    with _open_client(home) as client:
        found = client.channels.list()
    if as_json:
        echo_json([one.model_dump() for one in found])
        return
    for one in found:
        state = (
            f"not paired; run: freehold channels pair {one.name}" if one.owner is None else f"paired with {one.owner}"
        )
        problem = f"; away: {one.error}" if one.state == "away" else ""
        strangers = f"; {one.strangers} messages of strangers" if one.strangers else ""
        click.echo(f"{one.name} ({one.kind}): {state}{problem}{strangers}")
    if not found:
        click.echo("There are no channels. Add one: freehold channels add telegram")


def _read_setting(text: str) -> tuple[str, str | int]:
    key, found, value = text.partition("=")
    if not found:
        raise click.UsageError(f"--set {text!r} is not KEY=VALUE")
    return key, int(value) if key == "port" and value.isdecimal() and len(value) < 6 else value


def _show(reply: "ApiModel", as_json: bool, words: str) -> None:
    if as_json:
        echo_json(reply.model_dump())
    else:
        click.echo(words)
