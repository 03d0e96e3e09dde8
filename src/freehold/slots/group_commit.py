"""Several changes in one transaction, because most of the cost of a transaction is the wait for the disk."""

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from freehold.timeline import Timeline, Transaction

T = TypeVar("T")
MAX_TOGETHER = 64


@dataclass
class _Change:
    make: Callable[[Transaction], Any]
    reply: Any = None
    error: BaseException | None = None
    done: bool = False


class GroupCommit:
    """The thread that has its turn commits the changes of all threads that wait. Each change succeeds or fails alone."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._waiting: list[_Change] = []
        self._list = threading.Lock()
        self._turn = threading.Lock()

    def run(self, make: Callable[[Transaction], T]) -> T:
        """Blocks until the change is stored. What `make` raises is raised here, and its change is rolled back."""
        mine = _Change(make)
        with self._list:
            self._waiting.append(mine)
        while not mine.done:
            with self._turn:
                if not mine.done:
                    with self._list:
                        batch, self._waiting = self._waiting[:MAX_TOGETHER], self._waiting[MAX_TOGETHER:]
                    self._commit(batch)
        if mine.error is not None:
            raise mine.error
        return cast("T", mine.reply)

    def _commit(self, batch: list[_Change]) -> None:
        try:
            with self._timeline.transaction() as tx:
                for change in batch:
                    self._try(tx, change, alone=len(batch) == 1)
        except BaseException as error:
            # Nothing of this transaction is stored. Each thread raises it for its own caller.
            for change in batch:
                change.error = change.error or error
        finally:
            for change in batch:
                change.done = True

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
