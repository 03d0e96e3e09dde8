"""What the keeper runs: a `Program` can be started many times, and each time is one `ProgramRun`.

A new kind of program is a new class beside the existing ones, not a flag on them.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class ProgramExit:
    """How a run ended. `description` is for the owner: `was killed by SIGSEGV`."""

    words: str
    code: int | None = None


class ProgramRun(Protocol):
    """One run of a program. It is stopped by `request_stop`, `wait_drained` and `kill`, in this order, each at most once."""

    @property
    def pid(self) -> int | None: ...

    async def wait_ended(self) -> ProgramExit:
        """Returns when the program has ended and its last output is in the log."""

    async def probe(self) -> float:
        """How many seconds ago it last answered; raises FreeholdError, OSError or TimeoutError when it does not answer."""

    async def request_stop(self) -> None:
        """Ask it to accept no new work and to finish what it has. Returns at once."""

    async def wait_drained(self) -> None:
        """Returns when it has ended. The caller sets the deadline."""

    async def kill(self) -> None:
        """End it and all its descendants now. Idempotent."""


class Program(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def required(self) -> bool:
        """Whether the seal waits for it."""

    @property
    def starts_on_demand(self) -> bool:
        """Whether `start` waits until somebody needs it. It is idle until then, and that is no fault."""

    async def start(self) -> ProgramRun:
        """Start it; raises FreeholdError or OSError when that fails, and then leaves nothing behind."""
