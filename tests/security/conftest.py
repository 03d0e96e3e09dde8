"""Two real computers for a module, and the bait that an escape would find on the host."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from freehold.computer.escapes import Bait, placed_bait
from freehold.computer.library.computer import Computer


@pytest.fixture(scope="session", autouse=True)
def own_temporary_folder() -> Iterator[Path]:
    """A folder that every user may enter, which the bait needs. The mode of /tmp is not reliable."""
    folder = Path(tempfile.mkdtemp(prefix="fh-", dir="/var/tmp"))
    folder.chmod(0o755)
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    yield folder
    tempfile.tempdir = before
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def bait() -> Iterator[Bait]:
    with placed_bait() as laid:
        yield laid


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def computer() -> AsyncIterator[Computer]:
    async with Computer.start() as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bystander() -> AsyncIterator[Computer]:
    async with Computer.start() as started:
        yield started
