"""Computers for the tests: real ones, sealed with bubblewrap, thrown away after each test."""

from collections.abc import AsyncIterator

import pytest

from freehold.computer import Computer


@pytest.fixture
async def computer() -> AsyncIterator[Computer]:
    async with Computer.start() as started:
        yield started
