"""A request with one short reply."""

import asyncio
from typing import Any

from freehold.computer.library import reply
from freehold.computer.library.frames import protocol_error
from freehold.computer.library.link import Link
from freehold.errors import FreeholdError


class _ReplyReceiver:
    def __init__(self) -> None:
        self.done: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    def data(self, stream: int, payload: memoryview) -> None:
        raise protocol_error("data in reply to a request without data")

    def end(self, stream: int) -> None:
        return

    def message(self, message: dict[str, Any]) -> None:
        if not self.done.done():
            self.done.set_result(message)

    def closed(self) -> None:
        if not self.done.done():
            self.done.set_result({"error": ["computer.failed", "The computer closed the request without a reply"]})

    def lost(self, error: FreeholdError) -> None:
        if not self.done.done():
            self.done.set_exception(error)


async def send_request(link: Link, request: dict[str, Any], *, counts: bool = True) -> Any:
    """The `ok` value of the guest's reply; its error is raised. `counts` says whether it is use of the computer."""
    answer = _ReplyReceiver()
    with link.use.hold_or_observe(counts):
        channel = link.open(request, answer, counts=counts)
        try:
            message = await answer.done
        finally:
            channel.close()
    error = reply.read_error(message)
    if error is not None:
        raise error
    return message.get("ok")
