"""What a target of `make attack` is, and the list of them.

A target is a module in `tests/attack/targets/` with an async context manager `open_target(folder)`. It starts what is
attacked, yields a function that runs one round, and ends what it started.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random

RunRound = Callable[[Random], Awaitable[int]]
"""Tries some inputs that the random generator chose, and returns how many. Raises AssertionError when one got through.

All chance comes from the generator: the same generator state makes the same inputs. A round takes about a second.
"""

OpenTarget = Callable[[Path], AbstractAsyncContextManager[RunRound]]

TARGETS_FOLDER = Path(__file__).parent / "targets"


@dataclass(frozen=True)
class AttackTarget:
    """A named target. The name is that of its module."""

    name: str
    open: OpenTarget

    def random_for(self, seed: int, round_number: int) -> Random:
        """The generator of one round. It depends on nothing else, so a round can be repeated alone."""
        return Random(f"{seed}/{self.name}/{round_number}")


def list_target_names() -> list[str]:
    return sorted(file.stem for file in TARGETS_FOLDER.glob("*.py"))


def load_target(name: str) -> AttackTarget:
    module = import_module(f"tests.attack.targets.{name}")
    return AttackTarget(name, module.open_target)
