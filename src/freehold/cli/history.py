"""`freehold history`."""

import json
import sys

import click

from freehold.cli._history import OWNER, ask, describe_outcome, echo_lines
from freehold.cli._options import home_option, json_option
from freehold.home import Home


@click.group()
def command() -> None:
    """Look after the history itself.

    \b
    Examples:
      freehold history verify
      freehold history size
    """


@command.command()
@home_option
@json_option
def verify(home: Home, as_json: bool) -> None:
    """Read everything again; name what is damaged and the entries it touches. Exits 1 when something is.

    \b
    Example:
      freehold history verify
    """
    answer = ask(home, "history.verify")
    if as_json:
        click.echo(json.dumps(answer))
    else:
        click.echo(f"{answer['contents']} contents, {answer['bytes']:,} bytes read.")
        for damage in answer["damages"]:
            click.secho(f"damaged: content {damage['content']}: {damage['reason']}", fg="red")
            for touched in damage["touches"]:
                until = f"to {touched['last']}" if touched["last"] is not None else "to now"
                click.echo(f"  {touched['path']} in entries {touched['first']} {until}")
        if not answer["damages"]:
            click.secho("Nothing is damaged.", fg="green")
    if answer["damages"]:
        sys.exit(1)


@command.command()
@home_option
@json_option
def size(home: Home, as_json: bool) -> None:
    """Say how much disk the history uses, and how much it may.

    \b
    Example:
      freehold history size
    """
    answer = ask(home, "history.size")
    if as_json:
        click.echo(json.dumps(answer))
        return
    share = 100 * answer["used"] / max(1, answer["quota"])
    click.echo(f"{answer['used']:,} of {answer['quota']:,} bytes ({share:.1f} %)")
    click.echo(f"{answer['entries']} entries, {answer['contents']} contents holding {answer['kept_bytes']:,} bytes")


@command.command()
@home_option
@json_option
def collect(home: Home, as_json: bool) -> None:
    """Thin out old entries and give their space back; at the quota, drop the oldest once you were told.

    \b
    Example:
      freehold history collect
    """
    answer = ask(home, "history.collect")
    if as_json:
        click.echo(json.dumps(answer))
        return
    gone = answer["thinned"] + answer["dropped"]
    click.echo(
        f"{gone} entries dropped, {answer['freed']:,} bytes freed, {answer['used']:,} of {answer['quota']:,} used."
    )
    if answer["waiting"]:
        click.secho(
            "The quota is reached: the oldest entries go at the next collection. Raise history.quota to keep them.",
            fg="yellow",
        )


@command.command()
@click.option(
    "--finish/--back", required=True, default=None, help="Go on to where it was going, or back to where it came from."
)
@home_option
@json_option
def recover(home: Home, finish: bool, as_json: bool) -> None:
    """After a restore that was interrupted: finish it, or take it back.

    \b
    Example:
      freehold history recover --finish
    """
    answer = ask(home, "history.recover", {"finish": finish, "who": OWNER})
    if as_json:
        click.echo(json.dumps(answer))
    else:
        echo_lines(describe_outcome(answer))
