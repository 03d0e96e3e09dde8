"""Signals during an upgrade. A lost terminal does not end it, and Ctrl-C takes it back in order.

The handlers are functions, so that no program that is started meanwhile ignores a signal.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def outlast_terminal() -> Iterator[None]:
    """The end of a session over SSH changes nothing. SIGTERM is as Ctrl-C: KeyboardInterrupt."""
    with _handle((signal.SIGHUP,), _do_nothing), _handle((signal.SIGTERM,), _interrupt):
        yield


@contextlib.contextmanager
def without_interruption() -> Iterator[None]:
    """Neither Ctrl-C nor SIGTERM ends this part."""
    with _handle((signal.SIGHUP, signal.SIGINT, signal.SIGTERM), _do_nothing):
        yield


@contextlib.contextmanager
def _handle(numbers: tuple[signal.Signals, ...], handler: "signal._HANDLER") -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, kept in before.items():
            signal.signal(number, kept)


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """Unlike SIG_IGN, this is not inherited."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
