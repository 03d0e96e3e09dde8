"""Sleep functions for the asynchronous and the synchronous client."""

import asyncio
import time


def sleep(seconds: float) -> None:
    time.sleep(seconds)


async def async_sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)
