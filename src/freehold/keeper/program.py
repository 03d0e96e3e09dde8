"""What the keeper keeps: a `Program` can be started any number of times, a `Run` is one life of it.

A new kind of program is a sibling of the ones in this room, never a flag on them.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Ending:
    """How a life ended, in words for the owner (`was killed by SIGSEGV`)."""

    words: str
    code: int | None = None


class Run(Protocol):
    """One life of a program. Its stop goes through `refuse`, `drain` and `kill`, in this order, each at most once."""

    @property
    def pid(self) -> int | None: ...

    async def ended(self) -> Ending:
        """Returns when the program is no more, and its last words are in the log."""

    async def probe(self) -> float:
        """Ask its own question: how many seconds ago it last answered; FreeholdError, OSError or TimeoutError if not now."""

    async def refuse(self) -> None:
        """Ask it to take no new work and to finish what it has. Returns at once."""

    async def drain(self) -> None:
        """Returns when it has ended by itself. The caller sets the deadline."""

    async def kill(self) -> None:
        """End it and all its descendants now; idempotent."""


class Program(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def required(self) -> bool:
        """Whether the seal waits for it."""

    async def start(self) -> Run:
        """Begin a life; raises FreeholdError or OSError when it cannot, having left nothing behind."""
