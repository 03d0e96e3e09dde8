"""What the agents' tests share: one computer for all of a module, and a room of its own for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.agents.stage import Stage, staged

from freehold.computer import Computer


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def computer(workspace: Path) -> AsyncIterator[Computer]:
    async with Computer.start(workspace=workspace) as computer:
        yield computer


@pytest_asyncio.fixture(loop_scope="module")
async def stage(computer: Computer, workspace: Path, tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(computer, workspace, tmp_path / "home") as stage:
        yield stage
