"""`freehold map`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from freehold.cli._json_output import JsonOutput, json_option
from freehold.cli._options import home_option
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.cli._run_work import PromptOrder
    from freehold.client._async.freehold import AsyncFreehold
    from freehold.computer import Limits
    from freehold.computer.batch.batch import Batch

PROMPTS_AT_ONCE = 4
MIN_MEMORY = 64 << 20


@dataclass(frozen=True)
class MapOptions:
    """What both kinds of batches have."""

    parallel: int | None
    retries: int
    retry_failed: int


@dataclass(frozen=True)
class ScriptPlace:
    """Where a script runs, and what each of its computers may use."""

    on: str | None
    timeout: float | None
    memory: str | None
    cpus: float | None


@click.command()
@click.argument("words", nargs=-1, type=click.Path(path_type=Path), metavar="SCRIPT INPUTS…")
@click.option(
    "--lines",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="Each line of this file is an input as well; - reads them from the input of the command.",
)
@click.option(
    "--into", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER", help="[default: SCRIPT-results]"
)
@click.option(
    "--parallel",
    type=click.IntRange(1, 1024),
    metavar="N",
    help=f"How many at once. [default: one a processor; {PROMPTS_AT_ONCE} with --prompt]",
)
@click.option("--on", metavar="BACKEND", help="Where the computers run, such as docker or fleet. [default: bubblewrap]")
@click.option("--timeout", type=click.FloatRange(min=0.1), metavar="SECONDS", help="End a task after this time.")
@click.option("--memory", metavar="SIZE", help="Memory of each computer, such as 512MiB. [default: 4GiB]")
@click.option(
    "--cpus", type=click.FloatRange(min=0.01), metavar="N", help="Processor cores of each computer. [default: 2]"
)
@click.option(
    "--retries",
    type=click.IntRange(0, 100),
    default=2,
    show_default=True,
    metavar="N",
    help="Begin a task that was lost again, up to N times.",
)
@click.option(
    "--retry-failed",
    type=click.IntRange(0, 100),
    default=0,
    metavar="N",
    help="Begin a task that failed again, up to N times. [default: never]",
)
@click.option(
    "--prompt", metavar="TEXT", help="Ask an agent for each input, in the place of a script. Freehold must run."
)
@click.option("--agent", metavar="AGENT", help="With --prompt. [default: the default agent]")
@click.option(
    "--budget", type=click.FloatRange(min=0, min_open=True), metavar="SUM", help="With --prompt: what all may cost."
)
@click.option("--folder", metavar="PATH", help="With --prompt: a folder of the workspace of which each gets a copy.")
@click.option("--ask", is_flag=True, help="With --prompt: agents may wait for your answer. Else the answer is no.")
@home_option
@json_option(JsonOutput("freehold.computer.batch.batch:BatchSummary"))
@click.pass_context
def command(
    ctx: click.Context,
    words: tuple[Path, ...],
    lines: TextIO | None,
    into: Path | None,
    parallel: int | None,
    on: str | None,
    timeout: float | None,
    memory: str | None,
    cpus: float | None,
    retries: int,
    retry_failed: int,
    prompt: str | None,
    agent: str | None,
    budget: float | None,
    folder: str | None,
    ask: bool,
    home: Home,
    as_json: bool,
) -> None:
    """Run a script or prompt over many inputs, each in a sealed computer.

    The script gets the path of its input as argument, and no network. What it prints, and what it writes into the folder
    $FREEHOLD_RESULTS, is in FOLDER afterwards. After Ctrl-C, a crash or a power cut, give the same command again: it goes
    on, and what has ended is not run again.

    With --prompt there is no script: an agent is asked about each input, as freehold runs does.

    \b
    Examples:
      freehold map count.py notes/*.md
      freehold map resize.sh photos/*.jpg --into small --parallel 8
      seq 1000 | freehold map evaluate.py --lines - --timeout 60 --json
      freehold map --prompt "Summarise it in one sentence" notes/*.md --budget 2 --into summaries
    """
    from freehold.cli._batch_view import BatchView, tell_summary

    texts = [line.rstrip("\r\n") for line in lines or ()]
    files = words if prompt is not None else words[1:]
    inputs: list[str | Path] = [*files, *(text for text in texts if text)]
    if not inputs:
        raise click.UsageError("Give a script or --prompt, and at least one input or --lines with a file.")
    options = MapOptions(parallel, retries, retry_failed)
    if prompt is None:
        _refuse(agent=agent, budget=budget, folder=folder, ask=ask or None)
        place = ScriptPlace(_find_place(on, home), timeout, memory, cpus)
        batch = _make_script_batch(words[0], inputs, into, options, place)
    else:
        _refuse("with --prompt", on=on, timeout=timeout, memory=memory, cpus=cpus)
        if not prompt.strip():
            raise click.UsageError("The prompt is empty.")
        from freehold.cli._run_work import PromptOrder

        order = PromptOrder(prompt, agent, folder, budget, ask)
        batch = _make_prompt_batch(home, order, inputs, into or Path("map-results"), options)
    ctx.exit(tell_summary(asyncio.run(BatchView(batch, budget).run()), as_json))


def _refuse(when: str = "without --prompt", /, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise click.UsageError(f"--{name} has no meaning {when}.")


def _find_place(on: str | None, home: Home) -> str | None:
    """A fleet without a place is that of `--home`."""
    from freehold.computer.registry import FLEET_WORDS

    where, mark, wishes = (on or "").partition("?")
    return f"ray://{home.root}{mark}{wishes}" if where in FLEET_WORDS else on


def _make_script_batch(
    script: Path, inputs: list[str | Path], into: Path | None, options: MapOptions, place: ScriptPlace
) -> "Batch":
    from freehold.computer import Computer

    return Computer.map(
        *(script, inputs),
        into=into or Path(f"{script.stem}-results"),
        parallel=options.parallel,
        timeout=place.timeout,
        limits=_read_limits(place),
        retries=options.retries,
        retry_failed=options.retry_failed,
        on=place.on,
    )


def _read_limits(place: ScriptPlace) -> "Limits":
    from freehold.computer import Limits
    from freehold.manifest.units import parse_size

    limits = Limits(cpus=place.cpus) if place.cpus is not None else Limits()
    if place.memory is None:
        return limits
    try:
        size = parse_size(place.memory)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--memory") from None
    assert isinstance(size, int)  # a text always becomes one
    if size < MIN_MEMORY:
        raise click.BadParameter(f"{place.memory} is too little; at least 64MiB", param_hint="--memory")
    return replace(limits, memory=size)


def _make_prompt_batch(
    home: Home, order: "PromptOrder", inputs: list[str | Path], into: Path, options: MapOptions
) -> "Batch":
    from freehold.cli._run_work import RunWork
    from freehold.computer.batch.batch import Batch, BatchBounds
    from freehold.computer.batch.script_work import list_tasks

    @asynccontextmanager
    async def open_client(batch_id: str) -> "AsyncIterator[AsyncFreehold]":
        from freehold.cli._running_freehold import running_async_freehold

        async with running_async_freehold(home, "map", batch_id, "orchestrator", "prompt", "files") as freehold:
            yield freehold

    bounds = BatchBounds(options.parallel or PROMPTS_AT_ONCE, options.retries, options.retry_failed)
    tasks = list_tasks(inputs)
    work = RunWork(order, min(bounds.parallel, max(len(tasks), 1)), open_client)
    return Batch(work, tasks, into, bounds)
