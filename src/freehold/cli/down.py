"""`freehold down`."""

import os
import select

import click

from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home

STOP_TIMEOUT = 90


@click.command()
@click.option("--now", is_flag=True, help="Do not wait for running work to finish.")
@home_option
def command(now: bool, home: Home) -> None:
    """Stop Freehold.

    New work is refused, running work may finish, data is written, and then all programs are ended.

    \b
    Example:
      freehold down
    """
    from freehold.keeper.calls import StopKeeper
    from freehold.keeper.client import call_keeper

    try:
        pid = call_keeper(home, StopKeeper()).pid
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
            call_keeper(home, StopKeeper())
    except FreeholdError:  # It has ended in the meantime.
        pass
    waiting = select.poll()
    waiting.register(ended, select.POLLIN)
    try:
        if not waiting.poll(STOP_TIMEOUT * 1000):
            raise FreeholdError(
                "keeper.still-running",
                f"The keeper (pid {pid}) did not stop within {STOP_TIMEOUT} s",
                hint=f"Run freehold down --now, or kill -9 {pid}; its programs end with it",
            )
    finally:
        os.close(ended)
    click.echo("Stopped.")
