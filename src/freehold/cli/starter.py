"""`freehold starter`."""

import click

from freehold.cli._options import home_option
from freehold.home import Home


@click.command()
@click.option("--if-new", is_flag=True, help="Do nothing unless this Freehold has never run and holds nothing.")
@home_option
def command(if_new: bool, home: Home) -> None:
    """Put a first project into the empty workspace: a small page to look at and to change.

    Downloads what the page needs (Vite and React, pinned and hashed) into this Freehold, and names its dev server in
    freehold.toml. Never touches a workspace that holds anything.

    \b
    Example:
      freehold starter
    """
    from freehold.cli.agents import Bar
    from freehold.home import ensure_private_folder
    from freehold.starter.kit import fetch_kit
    from freehold.starter.planting import declare_service, is_new, plant_project, refuse_unless_empty

    if if_new and not is_new(home):
        return
    refuse_unless_empty(home)
    ensure_private_folder(home.root)
    fetch_kit(home, Bar("first project"))
    Bar.clear()
    plant_project(home)
    declared = declare_service(home)
    click.echo(f"A first page is in {home.workspace}")
    if not declared:
        click.echo("freehold.toml has services already: add one for it yourself, as docs/guides/preview.md shows")
    elif not if_new:
        click.echo("freehold up serves it; a Freehold that runs is to be stopped first: freehold down")
