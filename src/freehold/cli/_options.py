"""Options that every verb spells the same way."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from freehold.home import Home, find_home

F = TypeVar("F", bound=Callable[..., Any])


HOME = "freehold.home"
"""Where the context remembers which home a verb was given."""


def _to_home(ctx: click.Context, _param: click.Parameter, value: str | None) -> Home:
    home: Home = find_home(value)
    ctx.meta[HOME] = home
    return home


def home_option(function: F) -> F:
    """Adds `--home`; the verb receives a `freehold.home.Home` named `home`."""
    return click.option(
        "--home",
        metavar="FOLDER",
        callback=_to_home,
        help="The Freehold to use (or set FREEHOLD_HOME). [default: the one of this user]",
    )(function)


def json_option(function: F) -> F:
    """Adds `--json`; the verb receives a bool named `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")(function)
