"""A response of server-sent events, whose reader sets the pace, but must take something from time to time."""

import asyncio

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from freehold.connection_slots import SLOT_KEY

STALL_TIMEOUT = 60.0
"""Seconds after which the connection of a reader that takes nothing is closed."""


class EventStream(StreamingResponse):
    media_type = "text/event-stream"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        slot = scope.get("state", {}).get(SLOT_KEY)

        async def send_in_time(message: Message) -> None:
            # When the connection is cut, the send ends as for a reader that has gone.
            timer = None if slot is None else asyncio.get_running_loop().call_later(STALL_TIMEOUT, slot.drop)
            try:
                await send(message)
            finally:
                if timer is not None:
                    timer.cancel()

        await super().__call__(scope, receive, send_in_time)
