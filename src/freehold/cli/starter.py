"""`freehold starter`."""

import click

from freehold.cli._options import home_option
from freehold.home import Home


@click.command()
@click.option("--if-new", is_flag=True, help="Do nothing unless this Freehold is new and empty.")
@home_option
def command(if_new: bool, home: Home) -> None:
    """Create a first project, a web page, in an empty workspace.

    Downloads Vite and React (pinned and checked by hash) into this Freehold and adds the dev server to
    freehold.toml. A workspace that is not empty is never changed.

    \b
    Example:
      freehold starter
    """
    from freehold.cli.agents import ProgressLine
    from freehold.home import ensure_private_folder
    from freehold.starter.packages import install_packages
    from freehold.starter.project_files import create_project, declare_service, is_new_home, refuse_unless_empty

    if if_new and not is_new_home(home):
        return
    refuse_unless_empty(home)
    ensure_private_folder(home.root)
    install_packages(home, ProgressLine("first project"))
    ProgressLine.clear()
    create_project(home)
    declared = declare_service(home)
    click.echo(f"Created a first project in {home.workspace}")
    if not declared:
        click.echo("freehold.toml already has services. Add one for the project yourself; see docs/guides/preview.md")
    elif not if_new:
        click.echo("To serve it, start Freehold: freehold up. If Freehold is running, stop it first: freehold down")
