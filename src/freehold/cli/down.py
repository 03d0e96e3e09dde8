"""`freehold down`."""

import os
import select

import click

from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home

PATIENCE = 90


@click.command()
@click.option("--now", is_flag=True, help="Give running work no time to finish.")
@home_option
def command(now: bool, home: Home) -> None:
    """Stop Freehold: refuse new work, let work finish, write, then end what is left.

    \b
    Example:
      freehold down
    """
    from freehold.keeper.client import call_keeper

    try:
        pid = call_keeper(home, "stop")["pid"]
    except FreeholdError as error:
        if error.code != "keeper.not-running":
            raise
        click.echo("Freehold is not running.")
        return
    try:
        ended = os.pidfd_open(pid)
    except ProcessLookupError:
        click.echo("Stopped.")
        return
    try:
        if now:
            call_keeper(home, "stop")
    except FreeholdError:  # it was faster than we are
        pass
    waiting = select.poll()
    waiting.register(ended, select.POLLIN)
    try:
        if not waiting.poll(PATIENCE * 1000):
            raise FreeholdError(
                "keeper.still-running",
                f"The keeper (pid {pid}) has not ended within {PATIENCE} s",
                hint=f"freehold down --now, or kill -9 {pid}: what it keeps dies with it",
            )
    finally:
        os.close(ended)
    click.echo("Stopped.")
