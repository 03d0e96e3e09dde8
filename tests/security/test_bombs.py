"""Each attempt to use up memory, processes, disk or anything else ends at its limit, and nobody else feels it."""

import pytest

from freehold.computer.computer import Computer
from freehold.computer.escapes import BOMBS, Bait, Bomb, try_bomb

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.name)
async def test_a_bomb_harms_nobody_else(bomb: Bomb, bait: Bait, bystander: Computer) -> None:
    """The limit stops it, its own computer answers again, and so does the one beside it."""
    verdict = await try_bomb(bomb, bait, bystander)
    assert verdict.outcome == "refused", verdict.seen
