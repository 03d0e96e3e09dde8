"""`freehold mcp`."""

import json
from typing import TYPE_CHECKING

import click

from freehold.agents.visible_text import make_visible
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.cli._running_freehold import running_freehold
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.client.mcp_models import McpServerInfo, McpToolInfo


@click.group(invoke_without_command=True)
@home_option
@json_option(JsonOutput("freehold.client.mcp_models:McpServerInfo", "list"))
@click.pass_context
def command(ctx: click.Context, home: Home, as_json: bool) -> None:
    """List MCP servers, and allow agents their tools. Freehold must run.

    Servers are described in freehold.toml, under [mcp.NAME]. A tool is offered to agents when you have allowed it, as it
    was shown to you; one that its server changes afterwards is not offered until you allow it again.

    \b
    Examples:
      freehold mcp
      freehold mcp try notes
      freehold mcp allow notes search read
      freehold mcp call notes search '{"text": "tea"}'
      freehold mcp off notes
    """
    if ctx.invoked_subcommand is not None:
        return
    with running_freehold(home, "mcp", "read") as freehold:
        servers = freehold.mcp.list()
    if as_json:
        echo_json([one.model_dump() for one in servers])
        return
    for one in servers:
        _show(one)
    if not servers:
        click.echo("There are no MCP servers. Describe one in freehold.toml, under [mcp.NAME]")


@command.command("try")
@click.argument("name")
@home_option
@json_option(JsonOutput("freehold.client.mcp_models:McpServerInfo"))
def try_server(name: str, home: Home, as_json: bool) -> None:
    """Connect to a server now, and list its tools.

    \b
    Example:
      freehold mcp try notes
    """
    with running_freehold(home, "mcp", "admin") as freehold:
        server = freehold.mcp.try_server(name)
    if as_json:
        echo_json(server.model_dump())
    else:
        _show(server, whole=True)


@command.command()
@click.argument("name")
@click.argument("tools", nargs=-1, metavar="[TOOL]...")
@click.option("--all", "every", is_flag=True, help="All tools of the server.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@home_option
def allow(name: str, tools: tuple[str, ...], every: bool, yes: bool, home: Home) -> None:
    """Allow tools of a server, as they are described now. Shows them first, and asks.

    \b
    Example:
      freehold mcp allow notes search
    """
    with running_freehold(home, "mcp", "admin") as freehold:
        server = freehold.mcp.try_server(name)
        known = {one.name: one for one in server.tools}
        chosen = [one for one in known.values() if not one.allowed] if every else [_find(known, tool) for tool in tools]
        for one in chosen:
            click.echo(make_visible(f"{one.name}: {one.description}\n{one.parameters}"), err=True)
        if not chosen:
            raise click.UsageError("Name a tool, or say --all")
        if not yes and not click.confirm("Allow this?", err=True):
            raise click.Abort
        for one in chosen:
            freehold.mcp.decide(name, one.name, one.digest)
    click.echo(f"Allowed {', '.join(one.name for one in chosen)}.")


@command.command()
@click.argument("name")
@click.argument("tools", nargs=-1, required=True, metavar="TOOL...")
@home_option
def deny(name: str, tools: tuple[str, ...], home: Home) -> None:
    """Allow tools of a server no longer.

    \b
    Example:
      freehold mcp deny notes delete
    """
    with running_freehold(home, "mcp", "admin") as freehold:
        for tool in tools:
            freehold.mcp.decide(name, tool, None)
    click.echo(f"Agents may no longer use {', '.join(tools)}.")


@command.command()
@click.argument("name")
@click.argument("tool")
@click.argument("arguments", default="{}")
@home_option
def call(name: str, tool: str, arguments: str, home: Home) -> None:
    """Call a tool yourself. ARGUMENTS is a JSON object. Exits 1 when the tool says that it failed.

    \b
    Example:
      freehold mcp call notes search '{"text": "tea"}'
    """
    try:
        given = json.loads(arguments)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise click.UsageError("ARGUMENTS is not a JSON object")
    with running_freehold(home, "mcp", "admin") as freehold:
        answer = freehold.mcp.call(name, tool, given)
    click.echo(make_visible(answer.text))
    if answer.failed:
        raise SystemExit(1)


@command.command()
@click.argument("name")
@home_option
def login(name: str, home: Home) -> None:
    """Sign in to a remote server by OAuth. Prints the address that your browser must open.

    The tokens are kept in the vault. Freehold adds them to requests; no agent sees them.

    \b
    Example:
      freehold mcp login tracker
    """
    with running_freehold(home, "mcp", "admin") as freehold:
        click.echo(freehold.mcp.begin_sign_in(name))
    click.echo("Open this address in a browser on this machine, and sign in there.", err=True)


@command.command()
@click.argument("name")
@home_option
def logout(name: str, home: Home) -> None:
    """Forget the tokens of a remote server. Its open connections end.

    \b
    Example:
      freehold mcp logout tracker
    """
    with running_freehold(home, "mcp", "admin") as freehold:
        freehold.mcp.sign_out(name)
    click.echo(f"Signed out of {name}.")


@command.command("on")
@click.argument("name")
@home_option
def switch_on(name: str, home: Home) -> None:
    """Offer the tools of a server to agents."""
    _switch(home, name, on=True)


@command.command("off")
@click.argument("name")
@home_option
def switch_off(name: str, home: Home) -> None:
    """Offer the tools of a server to nobody."""
    _switch(home, name, on=False)


def _switch(home: Home, name: str, *, on: bool) -> None:
    with running_freehold(home, "mcp", "admin") as freehold:
        freehold.mcp.switch(name, on=on)
    click.echo(f"{name} is {'on' if on else 'off'}.")


def _find(known: "dict[str, McpToolInfo]", tool: str) -> "McpToolInfo":
    if tool not in known:
        raise FreeholdError(
            "mcp.not-found", f"There is no tool {tool[:80]!a}", hint=f"The tools are: {', '.join(known)}"
        )
    return known[tool]


def _show(server: "McpServerInfo", *, whole: bool = False) -> None:
    state = "" if server.on else "  (off)"
    click.echo(make_visible(f"{server.name:20}{server.kind:8}{server.place}{state}", lines=False))
    for tool in server.tools:
        word = "changed" if tool.changed else "allowed" if tool.allowed else "not allowed"
        text = tool.description if whole else tool.description.partition("\n")[0][:80]
        click.echo(make_visible(f"  {tool.name:30}{word:13}{text}"))
    if not server.tools:
        click.echo(f"  no tools seen yet: freehold mcp try {server.name}")
