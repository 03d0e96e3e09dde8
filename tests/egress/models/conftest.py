"""Fixtures for the tests of the model gateway."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.egress.models.gateway_harness import GatewayHarness, run_gateway


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[GatewayHarness]:
    async with run_gateway(tmp_path) as opened:
        yield opened
