"""Fixtures of the agents' tests: one computer a module, and one service of sessions a test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.agents.session_harness import SessionHarness, run_harness

from freehold.computer import Computer


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def computer(workspace: Path) -> AsyncIterator[Computer]:
    async with Computer.start(workspace=workspace) as computer:
        yield computer


@pytest_asyncio.fixture(loop_scope="module")
async def harness(computer: Computer, workspace: Path, tmp_path: Path) -> AsyncIterator[SessionHarness]:
    async with run_harness(computer, workspace, tmp_path / "home") as harness:
        yield harness
