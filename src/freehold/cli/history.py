"""`freehold history`."""

import sys

import click

from freehold.cli._history import ask, carry_out, describe_outcome, echo_reply, make_author
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.history.calls import CollectGarbage, MeasureHistory, RecoverRestore, VerifyHistory
from freehold.home import Home


@click.group()
def command() -> None:
    """Verify, measure and clean up the history.

    \b
    Examples:
      freehold history verify
      freehold history size
    """


@command.command()
@home_option
@json_option(JsonOutput("freehold.history.calls:VerificationReport"))
def verify(home: Home, as_json: bool) -> None:
    """Check all stored contents for damage.

    Lists damaged contents and the affected entries. Exits 1 when there is damage.

    \b
    Example:
      freehold history verify
    """
    answer = ask(home, VerifyHistory())
    if as_json:
        echo_json(answer)
    else:
        click.echo(f"{answer.contents} contents, {answer.bytes:,} bytes read.")
        for damage in answer.damages:
            click.secho(f"damaged: content {damage.content}: {damage.reason}", fg="red")
            for touched in damage.touches:
                until = f"to {touched.last}" if touched.last is not None else "to now"
                click.echo(f"  {touched.path} in entries {touched.first} {until}")
        if not answer.damages:
            click.secho("No damage found.", fg="green")
    if answer.damages:
        sys.exit(1)


@command.command()
@home_option
@json_option(JsonOutput("freehold.history.model:StoreSize"))
def size(home: Home, as_json: bool) -> None:
    """Show the disk space that the history uses, and its quota.

    \b
    Example:
      freehold history size
    """
    answer = ask(home, MeasureHistory())
    if as_json:
        echo_json(answer)
        return
    share = 100 * answer.used / max(1, answer.quota)
    click.echo(f"{answer.used:,} of {answer.quota:,} bytes ({share:.1f} %)")
    click.echo(
        f"{answer.entries} entries, {answer.contents} contents with {answer.kept_bytes:,} bytes before compression"
    )
    if answer.set_aside:
        click.echo(f"{answer.set_aside:,} bytes more in files that were moved aside: {home.history / 'set-aside'}")


@command.command()
@home_option
@json_option(JsonOutput("freehold.history.model:CollectionResult"))
def collect(home: Home, as_json: bool) -> None:
    """Drop old entries and free their disk space.

    Old entries are thinned as configured under `history` in freehold.toml. Above the quota, the oldest entries are
    dropped after a warning.

    \b
    Example:
      freehold history collect
    """
    answer = ask(home, CollectGarbage())
    if as_json:
        echo_json(answer)
        return
    gone = answer.thinned + answer.dropped
    click.echo(f"{gone} entries dropped, {answer.freed:,} bytes freed, {answer.used:,} of {answer.quota:,} used.")
    if answer.waiting:
        click.secho(
            "The quota is exceeded. The oldest entries will be dropped at the next collection; to keep them, raise history.quota.",
            fg="yellow",
        )


@command.command()
@click.option(
    "--finish/--back", required=True, default=None, help="Finish the restore, or go back to the state before it."
)
@home_option
@json_option(JsonOutput("freehold.history.calls:RestoreReport"))
def recover(home: Home, finish: bool, as_json: bool) -> None:
    """Finish an interrupted restore, or go back to the state before it.

    \b
    Example:
      freehold history recover --finish
    """
    answer = carry_out(home, RecoverRestore(finish, who=make_author()), shown=not as_json)
    echo_reply(answer, describe_outcome(answer), as_json=as_json)
