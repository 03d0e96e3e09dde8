"""What the tests of the model gateway share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.egress.models.doorway import Doorway, doorway


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Doorway]:
    async with doorway(tmp_path) as opened:
        yield opened
