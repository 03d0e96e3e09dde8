"""Before Python 3.12, asyncio leaves a connection open whose task is cancelled before it has begun.

A server of a test is cancelled with the loop of that test. What it left open was reported by the garbage collector as a
leak of whichever test ran then.
"""

import asyncio
import sys
from asyncio import StreamReaderProtocol


def close_with_cancelled_tasks() -> None:
    """As Python 3.12 does: the connection of a server is closed when its task is cancelled. Idempotent."""
    if sys.version_info < (3, 12) and StreamReaderProtocol.connection_made is _connection_made:
        StreamReaderProtocol.connection_made = _connect_and_watch  # type: ignore[assignment, method-assign]


_connection_made = StreamReaderProtocol.connection_made


def _connect_and_watch(self: StreamReaderProtocol, transport: asyncio.BaseTransport) -> None:
    _connection_made(self, transport)
    task: asyncio.Task[None] | None = getattr(self, "_task", None)
    if task is not None:
        task.add_done_callback(lambda done: transport.close() if done.cancelled() else None)
