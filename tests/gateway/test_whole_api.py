"""Half a minute of generated requests against a Freehold that runs. `make attack` does the same for longer."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
import pytest_asyncio
from tests.attack.targets.http_api import RunningAttack, open_api_attack

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

SECONDS = 30.0
"""For all operations together."""
SEED = 12
DESCRIPTION = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text())
METHODS = ("get", "put", "post", "delete", "patch")
OPERATIONS = [
    f"{method.upper()} {path}" for path, item in DESCRIPTION["paths"].items() for method in METHODS if method in item
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def attack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningAttack]:
    async with open_api_attack(tmp_path_factory.mktemp("api")) as running:
        yield running


async def test_every_operation_of_the_running_gateway_is_attacked_in_one_test(attack: RunningAttack) -> None:
    assert sorted(attack.operations) == sorted(OPERATIONS)
    assert len(set(OPERATIONS)) == len(OPERATIONS) > 80


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_no_request_gets_a_server_error_or_ends_a_link(attack: RunningAttack, operation: str) -> None:
    """Nor an answer that the description does not have. At least once, then until its share of the time is over."""
    begun = time.monotonic()
    tried = rounds = 0
    while not rounds or time.monotonic() - begun < SECONDS / len(OPERATIONS):
        tried += await attack.run_round(Random(f"{SEED}/{operation}/{rounds}"), [operation])
        rounds += 1
    assert tried
