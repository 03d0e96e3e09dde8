"""A sealed computer with the built-in agent in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.agents import CODE, install_closure

from freehold.computer import Computer
from freehold.computer.contract.spec import Mount


@pytest.fixture(scope="session")
def closure() -> Path:
    return install_closure()


@pytest.fixture
async def computer(closure: Path) -> AsyncIterator[Computer]:
    mounts = [Mount(closure, "/opt/agents"), Mount(CODE, "/opt/agents/builtin/site/freehold/builtin")]
    async with Computer.start(mounts=mounts) as started:
        yield started
