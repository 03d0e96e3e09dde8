"""`freehold workflow`."""

import asyncio
import json
import os
import textwrap
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option, require_home
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.routines.section import UnattendedAsks
from freehold.routines.workflows.records import WorkflowState, WorkflowStep
from freehold.strict_json import EpochSeconds

if TYPE_CHECKING:
    from freehold.routines.workflows.changed_files import ChangedFiles
    from freehold.routines.workflows.records import Workflow
    from freehold.routines.workflows.store import WorkflowStore

_MARKS = {"done": "✓", "failed": "✗", "waiting": "?", "uncertain": "!", "cancelled": "-", "begun": "▸"}
id_argument = click.argument("workflow", metavar="ID")


@dataclass(frozen=True)
class ListedWorkflow:
    """A workflow without the texts that can be long."""

    number: int
    id: str
    file: str
    digest: str | None
    pinned: bool
    who: str
    run: str | None
    budget: float | None
    asks: UnattendedAsks
    state: WorkflowState
    created: EpochSeconds
    started: EpochSeconds | None
    finished: EpochSeconds | None
    cost: float | None
    error: str | None


class StepFile(TypedDict):
    """`word` says what happened to it."""

    path: str
    word: str


@dataclass(frozen=True)
class ShownStep(WorkflowStep):
    """`files` are the first ones that it has changed, `files_total` is how many there are."""

    files: tuple[StepFile, ...]
    files_total: int


@dataclass(frozen=True)
class ShownWorkflow(ListedWorkflow):
    result: Any
    output: str | None
    steps: tuple[ShownStep, ...]


@contextmanager
def _open(home: Home) -> "Iterator[WorkflowStore]":
    """The workflows of a home. Freehold need not run."""
    from freehold.egress.vault import Vault
    from freehold.manifest import require_manifest
    from freehold.routines.clock import WallClock
    from freehold.routines.workflows.journal import open_journal
    from freehold.routines.workflows.section import WorkflowsSection
    from freehold.routines.workflows.store import WorkflowStore
    from freehold.timeline import Timeline

    require_home(home)
    section = require_manifest(home.manifest, os.environ).manifest.section(WorkflowsSection)
    with Timeline(home.timeline) as timeline:
        journal = open_journal(section, timeline, Vault(home.vault).get)
        with closing(journal):
            journal.prepare()
            yield WorkflowStore(journal, WallClock())


@click.group(invoke_without_command=True)
@home_option
@json_option(JsonOutput(ListedWorkflow, "list"))
@click.pass_context
def command(ctx: click.Context, home: Home, as_json: bool) -> None:
    """Run Python files whose steps survive crashes.

    A workflow runs inside the computer, while Freehold runs, and may wait for days. The result of each step is stored before the next begins.

    \b
    Examples:
      freehold workflow run nightly.py
      freehold workflow list
      freehold workflow show ID
      freehold workflow answer ID 3 yes
      freehold workflow retry ID --from 2
    """
    if ctx.invoked_subcommand is None:
        _list(home, 30, as_json)


@command.command("list")
@click.option("--count", "-n", type=click.IntRange(1, 500), default=30, show_default=True, help="How many at most.")
@home_option
@json_option(JsonOutput(ListedWorkflow, "list"))
def list_(count: int, home: Home, as_json: bool) -> None:
    """List the workflows, the newest first.

    \b
    Example:
      freehold workflow list -n 5
    """
    _list(home, count, as_json)


def _list(home: Home, count: int, as_json: bool) -> None:
    with _open(home) as store:
        found = store.list_workflows(limit=count)
    if as_json:
        echo_json([_describe_workflow(one) for one in found])
        return
    for one in found:
        click.echo(_line(one))
    if not found:
        click.echo("There are no workflows. Run one: freehold workflow run FILE")


@command.command()
@click.argument("file", metavar="FILE")
@click.option("--data", metavar="JSON", default="{}", help="What its main is called with: a JSON object.")
@click.option("--budget", type=float, metavar="DOLLARS", help="US dollars that its agents may cost.")
@click.option("--asks", type=click.Choice(["park", "refuse"]), default="park", show_default=True,
              help="What happens when an agent asks for a permission: it waits for you, or gets a no.")  # fmt: skip
@home_option
@json_option(JsonOutput(ListedWorkflow))
def run(file: str, data: str, budget: float | None, asks: str, home: Home, as_json: bool) -> None:
    """Begin a workflow. FILE is a Python file of the workspace. If Freehold does not run, it begins when it does.

    \b
    Examples:
      freehold workflow run nightly.py
      freehold workflow run flows/report.py --data '{"week": 12}' --budget 2
    """
    from freehold.manifest import require_manifest
    from freehold.routines.workflows.section import WorkflowsSection
    from freehold.routines.workflows.store import WorkflowOrder

    if budget is not None and not 0 < budget < 1_000_000:
        raise FreeholdError("workflow.bad-value", f"{budget:g} US dollars cannot be a budget")
    section = require_manifest(home.manifest, os.environ).manifest.section(WorkflowsSection)
    order = WorkflowOrder(
        _read_file(home, file),
        _read_data(data),
        section.budget if budget is None else budget,
        "refuse" if asks == "refuse" else "park",
    )
    with _open(home) as store:
        made = store.add(order, who="owner")
    if as_json:
        echo_json(_describe_workflow(made))
    else:
        click.echo(f"The workflow {made.id} is due: freehold workflow show {made.id}")


@command.command()
@id_argument
@home_option
@json_option(JsonOutput(ShownWorkflow))
def show(workflow: str, home: Home, as_json: bool) -> None:
    """Show a workflow and its steps, with times, costs and files.

    \b
    Example:
      freehold workflow show ID
    """
    with _open(home) as store:
        found, steps = store.get(workflow), store.steps.list_steps(workflow)
    files = _find_files(home, steps)
    if as_json:
        described = tuple(_describe_step(step, files) for step in steps)
        listed = vars(_describe_workflow(found))
        echo_json(ShownWorkflow(**listed, result=found.result, output=found.output, steps=described))
        return
    click.echo(_line(found))
    for step in steps:
        _show_step(step, files)
    if found.result is not None:
        click.echo(f"\nIts result:\n{_visible(_say(found.result), lines=True)}")
    if found.output:
        click.echo(f"\nIt printed:\n{_visible(found.output, lines=True)}")


@command.command()
@id_argument
@home_option
def cancel(workflow: str, home: Home) -> None:
    """End a workflow, with the agents and commands that it has begun.

    \b
    Example:
      freehold workflow cancel ID
    """
    with _open(home) as store:
        found = store.cancel(workflow, who="owner", reason="The owner ended it")
    click.echo(f"The workflow {workflow} is {found.state}.")


@command.command()
@id_argument
@click.option("--from", "step", metavar="STEP", help="From this step on; by default from where it ended.")
@home_option
def retry(workflow: str, step: str | None, home: Home) -> None:
    """Begin an ended workflow once more, with its file as it is now. Earlier steps keep their results.

    \b
    Examples:
      freehold workflow retry ID
      freehold workflow retry ID --from 3
    """
    with _open(home) as store:
        store.retry(workflow, step, who="owner")
    click.echo(f"The workflow {workflow} is due.")


@command.command()
@id_argument
@click.argument("step")
@click.argument("text", metavar="ANSWER")
@home_option
def answer(workflow: str, step: str, text: str, home: Home) -> None:
    """Answer what a workflow asks. STEP is the number of the question.

    \b
    Example:
      freehold workflow answer ID 3 yes
    """
    with _open(home) as store:
        store.steps.answer(workflow, step, text, who="owner")
    click.echo(f"Answered step {step} of {workflow}.")


@command.command()
@id_argument
@click.argument("name")
@click.option("--data", metavar="JSON", default="{}", help="What the workflow gets: a JSON object.")
@home_option
def signal(workflow: str, name: str, data: str, home: Home) -> None:
    """Send an event to one workflow. It is kept until the workflow waits for it.

    \b
    Example:
      freehold workflow signal ID org.example.paid --data '{"order": 7}'
    """
    with _open(home) as store:
        store.steps.signal(workflow, name, _read_data(data), who="owner")
    click.echo(f"Sent {name} to {workflow}.")


def _read_file(home: Home, file: str) -> str:
    """The path from the workspace on, also of a file that is named by its place on this machine."""
    named = Path.cwd() / file
    return str(named.relative_to(home.workspace)) if named.is_relative_to(home.workspace) else file


def _read_data(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise FreeholdError("workflow.bad-value", f"--data is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise FreeholdError("workflow.bad-value", "--data is not a JSON object", hint="""Such as '{"week": 12}'""")
    return found


def _find_files(home: Home, steps: "list[WorkflowStep]") -> "ChangedFiles":
    """Empty when Freehold does not run."""
    from freehold.keeper.client import KeeperClient
    from freehold.routines.workflows.changed_files import list_changed_files

    return asyncio.run(list_changed_files(KeeperClient(home, timeout=5), steps))


def _line(workflow: "Workflow") -> str:
    cost = "" if workflow.cost is None else f"  ${workflow.cost:.4f}"
    error = "" if workflow.error is None else f"  {workflow.error}"
    words = f"{workflow.id}  {_moment(workflow.created)}  {workflow.file}  {workflow.state}{cost}{error}"
    return _visible(words)[:400]


def _show_step(step: "WorkflowStep", files: "ChangedFiles") -> None:
    spent = "" if step.finished is None else f"  {step.finished - step.begun:.1f} s"
    cost = "" if step.cost is None else f"  ${step.cost:.4f}"
    wake = "" if not step.wake else f"  until {_moment(step.wake)}"
    title = step.title.partition("\n")[0]
    text = f"{step.place:<8} {_MARKS[step.state]} {step.kind:<8} {title}{spent}{cost}{wake}"
    click.echo(_visible(text)[:300])
    if step.kind == "ask" and step.state == "waiting":
        question = _visible(str(step.given["question"]), lines=True).rstrip("\n")
        click.echo(textwrap.indent(question, " " * 11, lambda _line: True))
        choices = ", ".join(step.given.get("choices", ())) or "any text"
        click.echo(_visible(f"           freehold workflow answer {step.workflow} {step.place} …   ({choices})"))
    if step.error is not None:
        click.echo(_visible(f"           {step.error}")[:400])
    shown, total = files.get(step.place, ([], 0))
    for one in shown:
        click.echo(_visible(f"           {one.word} {one.path}"))
    if total > len(shown):
        click.echo(f"           … and {total - len(shown)} more (freehold diff {step.entry})")


def _say(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"


def _visible(text: str, *, lines: bool = False) -> str:
    from freehold.agents.visible_text import make_visible

    return make_visible(text, lines=lines)


def _describe_workflow(workflow: "Workflow") -> ListedWorkflow:
    return ListedWorkflow(**{field.name: getattr(workflow, field.name) for field in fields(ListedWorkflow)})


def _describe_step(step: WorkflowStep, files: "ChangedFiles") -> ShownStep:
    shown, total = files.get(step.place, ([], 0))
    return ShownStep(
        **vars(step), files=tuple(StepFile(path=one.path, word=one.word) for one in shown), files_total=total
    )
