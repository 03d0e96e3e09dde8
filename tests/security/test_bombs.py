"""Every attempt to exhaust memory, processes, disk or another resource ends at its limit, without effect on others."""

import pytest

from freehold.computer.escapes import BOMBS, Bait, Bomb, try_bomb
from freehold.computer.library.computer import Computer

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.name)
async def test_a_bomb_does_not_affect_other_computers(bomb: Bomb, bait: Bait, bystander: Computer) -> None:
    """The limit stops it; its own computer and another one still answer."""
    verdict = await try_bomb(bomb, bait, bystander)
    assert verdict.outcome == "refused", verdict.seen
