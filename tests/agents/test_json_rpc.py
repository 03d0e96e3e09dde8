"""An agent that sends large messages without a pause leaves half of the time to everybody else."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise

from freehold.agents.acp.json_rpc import FAIR_SHARE, AgentError, Json, JsonRpcPeer

MESSAGES = 20


class FloodPipe:
    """Every message is there at once: reading never waits."""

    def __init__(self, message: Json) -> None:
        self._data = [json.dumps(message).encode() + b"\n"] * MESSAGES

    async def read(self) -> bytes:
        return self._data.pop() if self._data else b""

    async def write(self, data: bytes) -> None:
        raise AssertionError("nothing is written")


async def run_flood(pipe: FloodPipe, on_notification: Callable[[str, Json], None]) -> None:
    async def pause() -> None:
        return

    def refuse(method: str, params: Json) -> Callable[[], Awaitable[Json]]:
        raise AgentError("agent.nonsense", method)

    await JsonRpcPeer(pipe, on_notification=on_notification, on_pause=pause, on_request=refuse).run()


async def test_others_get_their_turn_between_messages_that_take_long() -> None:
    turns = 0
    others: list[int] = []

    def handle(method: str, params: Json) -> None:
        until = time.monotonic() + 2 * FAIR_SHARE
        while time.monotonic() < until:
            pass
        others.append(turns)

    async def be_another() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    another = asyncio.ensure_future(be_another())
    try:
        await run_flood(FloodPipe({"method": "session/update", "params": {}}), handle)
    finally:
        another.cancel()
    assert len(others) == MESSAGES
    assert all(later > earlier for earlier, later in pairwise(others))
