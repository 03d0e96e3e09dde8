"""The connection of a computer's first link, made while the computer starts. It was never used for anything else."""

import asyncio
import contextlib

from freehold.errors import FreeholdError
from freehold.fleet.node_link import NodeLink
from freehold.fleet.wire import Stream

MAX_AGE = 5.0
"""Seconds. A node waits 10 for the first message of a connection."""


class EarlyConnection:
    """Begun at once, in a task of its own. `take` it once, or `close` it."""

    def __init__(self, node: NodeLink) -> None:
        self._began = asyncio.get_running_loop().time()
        self._opening: asyncio.Task[Stream] | None = asyncio.create_task(node.connect(), name="early connection")

    async def take(self) -> Stream | None:
        """None if it was taken, has failed, is too old or has ended: then the caller makes another one."""
        opening, self._opening = self._opening, None
        if opening is None:
            return None
        try:
            stream = await opening
        except (OSError, TimeoutError, FreeholdError):
            return None
        except asyncio.CancelledError:
            _end(opening)
            raise
        is_old = asyncio.get_running_loop().time() - self._began > MAX_AGE
        if is_old or stream[0].at_eof() or stream[1].is_closing():
            stream[1].transport.abort()
            return None
        return stream

    def close(self) -> None:
        """Idempotent."""
        opening, self._opening = self._opening, None
        if opening is not None:
            _end(opening)


def _end(opening: "asyncio.Task[Stream]") -> None:
    opening.cancel()
    opening.add_done_callback(_abort)


def _abort(opening: "asyncio.Task[Stream]") -> None:
    if not opening.cancelled():
        with contextlib.suppress(OSError, TimeoutError, FreeholdError):
            opening.result()[1].transport.abort()
