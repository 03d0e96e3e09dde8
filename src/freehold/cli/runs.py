"""`freehold runs`."""

from typing import TYPE_CHECKING

import click

from freehold.agents.visible_text import make_visible
from freehold.cli._history import EntryNumber
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.cli._running_freehold import running_freehold
from freehold.home import Home

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from freehold.client._sync.freehold import SyncFreehold
    from freehold.client.run_models import RunInfo

PERMISSIONS = ("ask", "network", "pods", "memory", "beads", "events", "history", "runs")
run_argument = click.argument("run", metavar="RUN")


def _open(home: Home) -> "AbstractContextManager[SyncFreehold]":
    """Only a Freehold that runs can run agents."""
    # admin: the owner ends what others began too.
    return running_freehold(home, "runs", "orchestrator", "prompt", "files", "admin")


@click.group(invoke_without_command=True)
@click.option("--active", is_flag=True, help="Only runs that have not finished.")
@home_option
@json_option(JsonOutput("freehold.client.run_models:RunInfo", "list"))
@click.pass_context
def command(ctx: click.Context, active: bool, home: Home, as_json: bool) -> None:
    """Let agents work in parallel, each in a copy of a folder.

    Each works in a computer of its own. The newest run is first. Freehold must run, and slots.orchestrator in freehold.toml be "local" or "external".

    \b
    Examples:
      freehold runs spawn "Write tests for parser.py" --folder site
      freehold runs
      freehold runs changes 7hj3c8d2kq
      freehold runs merge 7hj3c8d2kq
    """
    if ctx.invoked_subcommand is not None:
        return
    with _open(home) as freehold:
        page = freehold.runs.list(active=active)
    found = page.runs
    if as_json:
        echo_json([one.model_dump() for one in found])
        return
    for one in found:
        click.echo(_line(one))
    if page.cost:
        click.echo(f"All runs together have cost {page.cost:.4f} so far.")
    if not found:
        click.echo('There are no runs. Begin one: freehold runs spawn "PROMPT"')


def _line(run: "RunInfo") -> str:
    changes = f"+{run.added} ~{run.changed} -{run.removed} {run.outcome}" if run.is_finished else ""
    cost = "" if run.cost is None else f"  {run.cost:.4f}"
    text = f"{run.id}  {run.state.replace('_', ' '):<9}  {run.agent}  {changes}{cost}  {run.title}  {run.error or ''}"
    return make_visible(text.rstrip(), lines=False)


def _show(run: "RunInfo", as_json: bool) -> None:
    if as_json:
        echo_json(run.model_dump())
    else:
        click.echo(_line(run))


@command.command()
@click.argument("prompt")
@click.option("--agent", metavar="AGENT", help="[default: the default agent]")
@click.option("--folder", metavar="PATH", help="The folder of the workspace of which it gets a copy. [default: none]")
@click.option(
    "--entry", type=EntryNumber(), help="The folder as it was right after this entry. [default: as it is now]"
)
@click.option("--budget", type=click.FloatRange(min=0, min_open=True), metavar="SUM", help="End it when it costs more.")
@click.option(
    "--without",
    type=click.Choice(PERMISSIONS),
    multiple=True,
    metavar="PERMISSION",
    help=f"What it may not do: {', '.join(PERMISSIONS)}. Without ask, what it asks is answered with no.",
)
@click.option("--wait", is_flag=True, help="Print what it says, and wait until it has finished.")
@home_option
@json_option(JsonOutput("freehold.client.run_models:RunInfo"))
def spawn(
    prompt: str,
    agent: str | None,
    folder: str | None,
    entry: int | None,
    budget: float | None,
    without: tuple[str, ...],
    wait: bool,
    home: Home,
    as_json: bool,
) -> None:
    """Begin a run.

    \b
    Examples:
      freehold runs spawn "Write tests for parser.py" --folder site --wait
      freehold runs spawn "Look for mistakes" --folder site --without network --without pods
      freehold runs spawn "When did the tests break?" --folder site --entry 12
    """
    with _open(home) as freehold:
        may = [one for one in PERMISSIONS if one not in without]
        run = freehold.runs.spawn(prompt, agent=agent, folder=folder, entry=entry, budget=budget, permissions=may)
        if wait:
            for event in freehold.runs.stream(run.id):
                if event.kind == "message" and not as_json:
                    click.echo(make_visible(str(event.data.get("text", ""))))
            run = freehold.runs.get(run.id)
    _show(run, as_json)


@command.command()
@run_argument
@home_option
@json_option(JsonOutput("freehold.client.run_models:RunInfo"))
def stop(run: str, home: Home, as_json: bool) -> None:
    """End a run. What it has changed until then can be merged.

    \b
    Example:
      freehold runs stop 7hj3c8d2kq
    """
    with _open(home) as freehold:
        _show(freehold.runs.stop(run), as_json)


@command.command()
@run_argument
@home_option
@json_option(JsonOutput("freehold.client.run_models:RunFileChange", "list"))
def changes(run: str, home: Home, as_json: bool) -> None:
    """Show what a run has changed in its copy.

    \b
    Example:
      freehold runs changes 7hj3c8d2kq
    """
    with _open(home) as freehold:
        found = freehold.runs.changes(run)
    if as_json:
        echo_json([one.model_dump() for one in found.files])
        return
    for one in found.files:
        marks = (*one.traits, *(["others have changed it too"] if one.conflict else []))
        mark = f"  ({'; '.join(marks)})" if marks else ""
        click.echo(make_visible(f"{one.kind} {one.path}, {one.size} bytes{mark}", lines=False))
        if one.diff:
            click.echo(make_visible(one.diff))
    if not found.files:
        click.echo("There are no changes to take.")
    elif found.total > len(found.files):
        click.echo(f"NOT ALL ARE SHOWN: {found.total - len(found.files)} of {found.total} files are not listed here.")


@command.command()
@run_argument
@click.option("--force", is_flag=True, help="Overwrite what others have changed meanwhile.")
@home_option
@json_option(JsonOutput("freehold.client.run_models:RunInfo"))
def merge(run: str, force: bool, home: Home, as_json: bool) -> None:
    """Merge the changes of a run into the workspace.

    `freehold undo` takes it back.

    \b
    Example:
      freehold runs merge 7hj3c8d2kq
    """
    with _open(home) as freehold:
        _show(freehold.runs.take_changes(run, "merge", force=force), as_json)


@command.command()
@run_argument
@home_option
@json_option(JsonOutput("freehold.client.run_models:RunInfo"))
def drop(run: str, home: Home, as_json: bool) -> None:
    """Throw away the changes of a finished run.

    \b
    Example:
      freehold runs drop 7hj3c8d2kq
    """
    with _open(home) as freehold:
        _show(freehold.runs.take_changes(run, "drop"), as_json)
