"""Three minutes of generated requests against a Freehold that runs. `make attack` does the same for longer."""

import time
from pathlib import Path
from random import Random

from tests.attack.targets.http_api import OPERATIONS, open_api_attack

SECONDS = 180.0
SEED = 12


async def test_no_request_of_three_minutes_gets_a_server_error_or_ends_a_link(tmp_path: Path) -> None:
    """Every operation at least once, then any of them until the time is over."""
    begun = time.monotonic()
    async with open_api_attack(tmp_path) as attack:
        numbers = list(range(attack.operations))
        assert len(numbers) > 80
        first = [numbers[start : start + OPERATIONS] for start in range(0, len(numbers), OPERATIONS)]
        tried = rounds = 0
        while first or time.monotonic() - begun < SECONDS:
            chosen = first.pop(0) if first else None
            tried += await attack.run_round(Random(f"{SEED}/{rounds}"), chosen)
            rounds += 1
    assert tried > len(numbers)
