"""`freehold pods`."""

import base64
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from freehold.agents.visible_text import make_visible
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.cli._slots import call_slot, use_slot
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.slots import Slot
    from freehold.slots.pods.contract import DocumentInfo


@click.group(invoke_without_command=True)
@click.option("--folder", default="", metavar="PATH", help="List this folder. [default: the root]")
@click.option("--type", "media", metavar="TYPE", help="All documents of this type below it, such as 'image/*'.")
@home_option
@json_option(JsonOutput("freehold.slots.pods.contract:DocumentInfo", "list"))
@click.pass_context
def command(ctx: click.Context, folder: str, media: str | None, home: Home, as_json: bool) -> None:
    """Keep personal documents, and decide which agent reaches them.

    They are kept when slots.pods in freehold.toml is "local" or "external". An agent starts without access. Freehold does
    not need to run.

    \b
    Examples:
      freehold pods
      freehold pods put notes/today.md today.md
      freehold pods grant claude notes/
      freehold pods access
    """
    if ctx.invoked_subcommand is not None:
        return

    async def read(slot: "Slot") -> "list[DocumentInfo]":
        from freehold.slots import SlotCaller
        from freehold.slots.pods.contract import MAX_PAGE, FindDocuments, ListFolder

        found: list[DocumentInfo] = []
        cursor: str | None = None
        while True:
            limits = (folder, MAX_PAGE, cursor)
            wanted = ListFolder(*limits) if media is None else FindDocuments(media, *limits)
            page = await slot.call(wanted, SlotCaller("owner"))
            found += page.entries
            cursor = page.cursor
            if cursor is None:
                return found

    entries = use_slot(home, "pods", read)
    if as_json:
        echo_json(entries)
        return
    for one in entries:
        text = one.path if one.is_folder else f"{one.path}  {one.media}  {'' if one.size is None else one.size}"
        click.echo(make_visible(text, lines=False))
    if not entries:
        click.echo("Nothing is here. Write a document: freehold pods put PATH FILE")


@command.command(name="get")
@click.argument("path")
@home_option
def get_document(path: str, home: Home) -> None:
    """Write a document to the standard output.

    \b
    Example:
      freehold pods get notes/today.md
    """
    from freehold.slots.pods.contract import GetDocument

    found = call_slot(home, "pods", GetDocument(path))
    sys.stdout.buffer.write(found.content or b"")


@command.command()
@click.argument("path")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--type", "media", metavar="TYPE", help="Its media type. [default: by the name]")
@click.option("--new", "is_new", is_flag=True, help="Only if it does not exist.")
@click.option("--if-match", metavar="ETAG", help="Only if it has this ETag.")
@home_option
@json_option(JsonOutput("freehold.slots.pods.contract:DocumentInfo"))
def put(path: str, file: str, media: str | None, is_new: bool, if_match: str | None, home: Home, as_json: bool) -> None:
    """Write a document from a file. - reads the standard input.

    \b
    Example:
      freehold pods put notes/today.md today.md
    """
    from freehold.slots.pods.contract import PutDocument
    from freehold.slots.pods.files import split_name

    content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    wanted = PutDocument(
        path, media or split_name(path)[1], base64.b64encode(content).decode(), "base64", if_match, is_new
    )
    made = call_slot(home, "pods", wanted)
    if as_json:
        echo_json(made)
    else:
        click.echo(f"{made.path}  {made.media}  {made.size}  {made.etag}")


@command.command()
@click.argument("path")
@home_option
def delete(path: str, home: Home) -> None:
    """Delete a document, or an empty folder (its path ends with /).

    `freehold undo` brings back what is kept here.

    \b
    Example:
      freehold pods delete notes/today.md
    """
    from freehold.slots.pods.contract import DeleteDocument

    click.echo(f"Deleted: {call_slot(home, 'pods', DeleteDocument(path)).path}")


@command.command()
@click.argument("agent", required=False)
@home_option
@json_option(JsonOutput("freehold.slots.pods.contract:PodGrant", "list"))
def grants(agent: str | None, home: Home, as_json: bool) -> None:
    """List which agent may reach which folder.

    \b
    Example:
      freehold pods grants
    """
    from freehold.slots.pods.contract import ListGrants

    found = call_slot(home, "pods", ListGrants(agent)).grants
    if as_json:
        echo_json(found)
        return
    for one in found:
        reach = "" if one.session is None else f"  {'once' if one.once else 'only'} in the session {one.session}"
        click.echo(f"{one.agent:<16} {one.mode:<6} {one.folder or '/'}{reach}")
    if not found:
        click.echo("No agent has access.")


@command.command()
@click.argument("agent")
@click.argument("folder")
@click.option("--write", is_flag=True, help="Reading and writing. [default: reading only]")
@home_option
def grant(agent: str, folder: str, write: bool, home: Home) -> None:
    """Let an agent reach everything in a folder. / is everything.

    \b
    Example:
      freehold pods grant claude notes/ --write
    """
    from freehold.slots.pods.contract import GrantAccess

    call_slot(home, "pods", GrantAccess(agent, folder.removeprefix("/"), "write" if write else "read"))
    click.echo(f"{agent} may {'read and write' if write else 'read'} {folder}")


@command.command()
@click.argument("agent")
@click.argument("folder")
@home_option
def revoke(agent: str, folder: str, home: Home) -> None:
    """Take access away from an agent.

    \b
    Example:
      freehold pods revoke claude notes/
    """
    from freehold.slots.pods.contract import RevokeAccess

    call_slot(home, "pods", RevokeAccess(agent, folder.removeprefix("/")))
    click.echo(f"{agent} may no longer reach {folder}")


@command.command()
@click.option("--folder", metavar="PATH", help="Only in this folder.")
@click.option("--agent", metavar="AGENT", help="Only by this agent.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, metavar="N", help="The last N. [default: 50]")
@home_option
@json_option(JsonOutput("freehold.slots.pods.contract:PodAccess", "list"))
def access(folder: str | None, agent: str | None, limit: int, home: Home, as_json: bool) -> None:
    """Show who reached what, the newest first.

    \b
    Example:
      freehold pods access --agent claude
    """
    from datetime import UTC, datetime

    from freehold.slots.pods.contract import ListAccess

    found = call_slot(home, "pods", ListAccess(folder, agent, limit)).entries
    if as_json:
        echo_json(found)
        return
    for one in found:
        at = datetime.fromtimestamp(one.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        click.echo(make_visible(f"{at}  {one.act:<7}  {one.agent or one.who}  {one.path or '/'}", lines=False))
    if not found:
        click.echo("Nobody but you has reached anything.")
