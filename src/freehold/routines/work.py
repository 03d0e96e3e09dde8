"""What a run does: a piece of work that begins once, and that can be found again after a restart."""

from typing import Protocol

from freehold.routines.records import Routine, RoutineRun
from freehold.routines.run_changes import RunEnd


class RoutineWork(Protocol):
    """One kind of work. A `FreeholdError` of `begin` is a failure of the run."""

    async def begin(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        """Does it. None when the end is found later, by `settle`."""
        ...

    async def recover(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        """After a restart, for a run that had started. Never does a second time what may have been done."""
        ...

    async def settle(self, run: RoutineRun) -> RunEnd | None:
        """How it has ended; None while it goes on or waits."""
        ...

    async def measure_cost(self, run: RoutineRun) -> float | None:
        """US dollars so far."""
        ...

    async def stop(self, run: RoutineRun, reason: str) -> None:
        """Ends what runs. Idempotent."""
        ...
