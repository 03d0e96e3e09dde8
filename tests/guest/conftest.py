"""The guest in a sealed computer, and beneath the library: a raw socket to it."""

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.guest.link_bench import ChannelBench, LinkBench

from freehold.computer import Computer


@pytest.fixture
async def computer() -> AsyncIterator[Computer]:
    async with Computer.start() as started:
        yield started


@pytest.fixture
def bench() -> Iterator[ChannelBench]:
    with LinkBench() as link_bench:
        yield ChannelBench(link_bench)
