"""A short question with a short answer."""

import asyncio
from typing import Any

from freehold.computer import answers
from freehold.computer.frames import protocol_error
from freehold.computer.link import Link
from freehold.errors import FreeholdError


class _Answer:
    def __init__(self) -> None:
        self.done: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    def data(self, stream: int, payload: memoryview) -> None:
        raise protocol_error("contents where none were asked for")

    def end(self, stream: int) -> None:
        return

    def message(self, message: dict[str, Any]) -> None:
        if not self.done.done():
            self.done.set_result(message)

    def closed(self) -> None:
        if not self.done.done():
            self.done.set_result({"error": ["computer.failed", "The computer gave no answer"]})

    def lost(self, error: FreeholdError) -> None:
        if not self.done.done():
            self.done.set_exception(error)


async def ask_shortly(link: Link, request: dict[str, Any]) -> Any:
    """What the guest answers as `ok`; its error is raised."""
    answer = _Answer()
    channel = link.open(request, answer)
    try:
        message = await answer.done
    finally:
        channel.close()
    error = answers.failure(message)
    if error is not None:
        raise error
    return message.get("ok")
