"""`freehold restart`."""

import click

from freehold.cli._completion import offer, read_program_names
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home


@click.command()
@click.argument("program", shell_complete=offer(read_program_names))
@home_option
@json_option(JsonOutput("freehold.keeper.calls:ProgramStatus"))
def command(program: str, home: Home, as_json: bool) -> None:
    """Restart PROGRAM. The others keep running.

    \b
    Examples:
      freehold restart gateway
      freehold restart computer
    """
    from freehold.keeper.calls import RestartProgram
    from freehold.keeper.client import call_keeper

    found = call_keeper(home, RestartProgram(program), timeout=120)
    if as_json:
        echo_json(found)
    elif found.state == "ready":
        click.echo(f"{program} is ready" + (f" (pid {found.pid})" if found.pid else ""))
    elif found.state == "idle":
        click.echo(f"{program} starts with its first connection")
    if found.state not in ("ready", "idle"):
        raise FreeholdError(
            "program.not-ready",
            f"{program} is {found.state}" + (f": {found.last_error}" if found.last_error else ""),
            hint=f"See why: freehold logs {program}",
        )
