"""Several changes in one transaction, because most of the cost of a transaction is the wait for the disk."""

import asyncio
import contextvars
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from freehold.errors import FreeholdError
from freehold.timeline import Timeline, Transaction

T = TypeVar("T")
MAX_TOGETHER = 64


@dataclass
class _Change:
    make: Callable[[Transaction], Any]
    stored: "asyncio.Future[Any]"
    reply: Any = None
    error: BaseException | None = None


class GroupCommit:
    """What is asked for while a transaction runs is stored together by the next one. Each change succeeds or fails alone.

    One thread at a time works on it, as long as there is something, whatever the number of callers: threads that wait
    for each other cost more than the changes themselves.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._waiting: deque[_Change] = deque()
        self._is_running = False
        self._lock = threading.Lock()

    async def run(self, make: Callable[[Transaction], T], threads: Executor) -> T:
        """Returns when the change is stored. What `make` raises is raised here, and its change is rolled back.

        A change whose caller is cancelled may be stored nevertheless.
        """
        stored: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        context = contextvars.copy_context()
        with self._lock:
            self._waiting.append(_Change(lambda tx: context.run(make, tx), stored))
            begins, self._is_running = not self._is_running, True
        if begins:
            try:
                threads.submit(self._store_waiting)
            except RuntimeError:  # its threads have ended
                with self._lock:
                    left, self._is_running = list(self._waiting), False
                    self._waiting.clear()
                _answer(left, FreeholdError("slots.not-open", "The slot was closed before the change was made"))
        return await stored

    def _store_waiting(self) -> None:
        """In a thread, until nothing waits."""
        while True:
            with self._lock:
                batch = [self._waiting.popleft() for _ in range(min(MAX_TOGETHER, len(self._waiting)))]
                self._is_running = bool(batch)
            if not batch:
                return
            failed: BaseException | None = None
            try:
                self._commit(batch)
            except BaseException as error:
                failed = error
            with suppress(RuntimeError):  # the loop has ended, and its callers with it
                batch[0].stored.get_loop().call_soon_threadsafe(_answer, batch, failed)

    def _commit(self, batch: list[_Change]) -> None:
        """Raises what went wrong with the transaction as a whole: then nothing of it is stored."""
        with self._timeline.transaction() as tx:
            for change in batch:
                self._try(tx, change, alone=len(batch) == 1)

    def _try(self, tx: Transaction, change: _Change, *, alone: bool) -> None:
        if alone:
            change.reply = change.make(tx)
            return
        try:
            with tx.savepoint():
                change.reply = change.make(tx)
        except sqlite3.OperationalError:
            raise  # a full disk, for example: SQLite has rolled back all of it
        except Exception as error:
            change.error = error


def _answer(batch: list[_Change], failed: BaseException | None) -> None:
    """`failed`: why nothing of the batch is stored."""
    for change in batch:
        if change.stored.done():
            continue  # its caller was cancelled
        error = change.error or failed
        if error is None:
            change.stored.set_result(change.reply)
        else:
            change.stored.set_exception(error)
