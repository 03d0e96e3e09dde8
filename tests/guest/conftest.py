"""The guest in a sealed computer, and beneath the library: a raw socket to it."""

from collections.abc import AsyncIterator

import pytest

from freehold.computer import Computer


@pytest.fixture
async def computer() -> AsyncIterator[Computer]:
    async with Computer.start() as started:
        yield started
