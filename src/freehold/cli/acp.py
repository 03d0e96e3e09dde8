"""`freehold acp`."""

import asyncio
from pathlib import Path

import click

from freehold.cli._options import home_option
from freehold.home import Home


@click.command()
@click.option(
    "-a", "--agent", metavar="NAME", help="The agent of new sessions. [default: agents.default of the manifest]"
)
@click.option("--to", "url", metavar="URL", help="Use a remote Freehold; needs freehold login URL.")
@click.option(
    "--workspace",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Where the editor has the workspace, when it is not the one of this Freehold.",
)
@home_option
def command(agent: str | None, url: str | None, workspace: Path | None, home: Home) -> None:
    """Serve the sealed agents to an editor by ACP, on stdin and stdout.

    For Zed, JetBrains, Neovim, Emacs and every other editor that knows ACP: name this command as a custom agent.
    Sessions, approvals, history and undo are those of the Freehold. An approval can be answered in the editor or in the
    control center. /undo, /redo and /log work in every session.

    \b
    Examples:
      freehold acp
      freehold acp --agent claude
      freehold acp --to https://freehold.example.org --workspace ~/code
    """
    from freehold.cli._freehold_address import open_address

    with open_address(home, url, "acp") as (address, token):
        folder = workspace.expanduser().resolve() if workspace else home.workspace if url is None else None
        asyncio.run(_serve(address, token, folder, agent))


async def _serve(address: str, token: str | None, folder: Path | None, agent: str | None) -> None:
    from freehold.client import Freehold
    from freehold.editors.agent import EditorAgent
    from freehold.editors.paths import EditorPaths
    from freehold.editors.stdio import open_stdio

    async with Freehold(address, token=token) as home, open_stdio() as pipe:
        await EditorAgent(home, pipe, EditorPaths(folder), agent).run()
