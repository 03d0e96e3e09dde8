"""Waits for a condition that causes no event. Whatever does cause an event is waited for by that event instead."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

Value = TypeVar("Value")
DEADLINE = 120.0
_INTERVAL = 0.01


@overload
async def until(condition: Callable[[], Awaitable[Value]], deadline: float = DEADLINE) -> Value: ...
@overload
async def until(condition: Callable[[], Value], deadline: float = DEADLINE) -> Value: ...
async def until(condition: Callable[[], Any], deadline: float = DEADLINE) -> Any:
    """Evaluate the condition until it is true, and return its value. Fails after `deadline` seconds."""
    async with asyncio.timeout(deadline):
        while True:
            found = condition()
            value = await found if inspect.isawaitable(found) else found
            if value:
                return value
            await asyncio.sleep(_INTERVAL)


def wait_until(
    condition: Callable[[], Value],
    deadline: float = DEADLINE,
    pause: Callable[[], object] = lambda: time.sleep(_INTERVAL),
) -> Value:
    """The same for a test that is not async."""
    end = time.monotonic() + deadline
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"the condition is still false after {deadline:g} s")
        pause()
    return value
