"""The time limit of a test. Where it is reached, the stacks of all threads and of all asyncio tasks are printed."""

import asyncio
import gc
import io
import signal
import sys
import threading
import traceback
from types import FrameType
from typing import Any

import pytest

REPEAT = 30.0
"""An exception that a task of another's swallows ends no test: the limit fires again after this many seconds."""


def set_timer(item: pytest.Item, timeout: float) -> bool:
    """Fail the test after `timeout` seconds. pytest-timeout cancels it; its own timer prints no stacks in workers."""

    def on_alarm(number: int, frame: FrameType | None) -> None:
        sys.stderr.write(f"\n{item.nodeid} has run for {timeout:g} s.\n{describe_stacks()}")
        pytest.fail(f"Timeout (>{timeout:g}s): the stacks are in the error output", pytrace=True)

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel  # type: ignore[attr-defined]
    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, timeout, REPEAT)
    return True


def describe_stacks() -> str:
    """The stacks of all threads, and of all tasks of all event loops."""
    out = io.StringIO()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        out.write(f"\n== thread {names.get(ident, ident)}\n")
        out.writelines(traceback.format_stack(frame))
    for found in gc.get_objects():
        if isinstance(found, asyncio.Task) and not found.done():
            out.write(f"\n== task {found.get_name()}\n")
            out.writelines(traceback.format_list(_task_stack(found)))
    return out.getvalue()


def _task_stack(task: "asyncio.Task[object]") -> traceback.StackSummary:
    """From the task's function to the innermost thing that it waits for; asyncio itself knows only the first frame."""
    frames: list[tuple[FrameType, int]] = []
    waiting: Any = task.get_coro()
    while waiting is not None:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        if frame is not None:
            frames.append((frame, frame.f_lineno))
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)
    return traceback.StackSummary.extract(iter(frames))
