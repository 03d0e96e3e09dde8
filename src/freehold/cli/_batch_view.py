"""Shows a batch on a terminal while it runs, stops it with Ctrl-C, and tells how it ended."""

import asyncio
import contextlib
import shutil
import signal
import sys
from typing import TextIO

import click

from freehold.agents.visible_text import make_visible
from freehold.cli._json_output import echo_json
from freehold.computer.batch.batch import Batch, BatchSummary
from freehold.computer.batch.progress import BatchProgress, describe_progress, format_seconds
from freehold.computer.batch.task import JournalEvent

INTERVAL = 0.5
STOPPED = "You stopped it"


class BatchView:
    """Failures are told as they happen. The line of progress is written over and over, on a terminal only; elsewhere it
    is told once why a task waits."""

    def __init__(self, batch: Batch, budget: float | None = None) -> None:
        self._batch = batch
        self._budget = budget
        self._terminal: TextIO | None = sys.stderr if sys.stderr.isatty() else None
        self._length = 0
        self._is_told = False
        batch.report = self._report

    async def run(self) -> BatchSummary:
        """The summary, also when SIGINT or SIGTERM stopped it."""
        loop = asyncio.get_running_loop()
        working = asyncio.ensure_future(self._batch.run())
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, working.cancel)
        showing = asyncio.ensure_future(self._show())
        try:
            return await working
        except asyncio.CancelledError:
            return self._batch.summarize(STOPPED)
        finally:
            showing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await showing
            self._clear()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def _show(self) -> None:
        while True:
            self._show_now()
            await asyncio.sleep(INTERVAL)

    def _show_now(self) -> None:
        progress = self._batch.progress
        if self._terminal is None:
            if progress.waits_for and not self._is_told:
                self._is_told = True
                click.echo(make_visible(f"A task waits for room: {progress.waits_for}", lines=False), err=True)
            return
        text = make_visible(f"{describe_progress(progress, self._budget)} (Ctrl-C stops)", lines=False)
        text = text[: shutil.get_terminal_size().columns - 1]  # of a longer one only the last line is written over
        self._terminal.write("\r" + text.ljust(self._length))
        self._terminal.flush()
        self._length = len(text)

    def _clear(self) -> None:
        if self._terminal is not None and self._length:
            self._terminal.write("\r" + " " * self._length + "\r")
            self._terminal.flush()
            self._length = 0

    def _report(self, event: JournalEvent, _progress: BatchProgress) -> None:
        if event.event in ("failed", "lost"):
            self._clear()
            click.echo(make_visible(f"task {event.task} {event.event}: {event.error}", lines=False), err=True)


def tell_summary(summary: BatchSummary, as_json: bool) -> int:
    """Prints it. Returns the exit code: 0 when every task is done."""
    if as_json:
        echo_json(summary)
        return 0 if summary.is_done else 1
    words = [f"{summary.done} of {summary.total} done"]
    counts = ((summary.failed, "failed"), (summary.lost, "lost"), (summary.waiting, "not begun or stopped"))
    words += [f"{count} {word}" for count, word in counts if count]
    words.append(f"in {format_seconds(summary.seconds)}")
    if summary.cost is not None:
        words.append(f"cost {summary.cost:.4f}")
    click.echo(make_visible(f"{', '.join(words)}. Results: {summary.folder}", lines=False))
    if summary.stopped_by is not None:
        click.echo(f"{summary.stopped_by}. The same command goes on from here.", err=True)
    elif summary.failed or summary.lost:
        options = [word for count, word in ((summary.failed, "--retry-failed"), (summary.lost, "--retries")) if count]
        click.echo(f"To try those again, give the same command with a higher {' or '.join(options)}.", err=True)
    return 0 if summary.is_done else 1
