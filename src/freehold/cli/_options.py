"""Options that all commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from freehold.errors import FreeholdError
from freehold.home import Home, find_home

F = TypeVar("F", bound=Callable[..., Any])


HOME = "freehold.home"
"""The key of the home in the context of a command."""


def _to_home(ctx: click.Context, _param: click.Parameter, value: str | None) -> Home:
    home: Home = find_home(value)
    ctx.meta[HOME] = home
    return home


def home_option(function: F) -> F:
    """Add `--home`. The command receives a `freehold.home.Home` named `home`."""
    return click.option(
        "--home",
        metavar="FOLDER",
        callback=_to_home,
        help="The folder of the Freehold to use (or set FREEHOLD_HOME). [default: the one of this user]",
    )(function)


def choose_home(ctx: click.Context, home: Home) -> Home:
    """The home of a subcommand: `--home` may be before or after its name."""
    given = ctx.get_parameter_source("home") is not click.core.ParameterSource.DEFAULT
    return home if given or not isinstance(ctx.obj, Home) else ctx.obj


def require_home(home: Home) -> None:
    """Raise `home.missing` unless the folder exists. For commands that must not create it."""
    if not home.root.is_dir():
        raise FreeholdError("home.missing", f"There is no Freehold in {home.root}", hint="Create one: freehold up")
