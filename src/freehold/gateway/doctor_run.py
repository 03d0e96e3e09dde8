"""One examination by the doctor. The runner loads this module when one is started."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from freehold.computer.contract.report import Isolation
from freehold.computer.escapes.escape import Verdict
from freehold.doctor import (
    AttemptEnded,
    DoctorEnded,
    DoctorEvent,
    DoctorFailed,
    DoctorProcess,
    DoctorStarted,
    ExceptionTried,
    IsolationFound,
)
from freehold.strict_json import encode

RUN_TIMEOUT = 900.0


@dataclass
class DoctorRun:
    """An examination that has not ended."""

    who: str
    quick: bool
    process: DoctorProcess
    since: float = field(default_factory=time.time)
    started: DoctorStarted | None = None
    isolation: Isolation | None = None
    attempts: list[Verdict] = field(default_factory=list)
    exceptions: list[ExceptionTried] = field(default_factory=list)
    ok: bool = False
    stopped_by: str | None = None

    @property
    def total(self) -> int:
        return 0 if self.started is None else self.started.total

    async def follow(self, on_progress: Callable[[], None]) -> str | None:
        """Until it ends. Returns why it did not finish; None when it did."""

        def add_event(event: DoctorEvent) -> None:
            self.add_event(event)
            on_progress()

        try:
            async with asyncio.timeout(RUN_TIMEOUT):
                await self.process.follow(add_event)
        except TimeoutError:
            return f"The doctor did not finish within {RUN_TIMEOUT:.0f} s"
        except DoctorFailed as error:
            return str(error)
        return None

    def add_event(self, event: DoctorEvent) -> None:
        match event:
            case DoctorStarted():
                self.started = event
            case IsolationFound():
                self.isolation = event.isolation
            case AttemptEnded():
                self.attempts.append(event.verdict)
            case ExceptionTried():
                self.exceptions.append(event)
            case DoctorEnded():
                self.ok = event.ok

    def make_report(self, problem: str | None) -> dict[str, Any]:
        """`problem` says why the examination did not finish; then the report is not ok."""
        started = self.started or DoctorStarted(0, {}, (), ())
        return {
            "at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "who": self.who,
            "quick": self.quick,
            "seconds": round(time.time() - self.since, 1),
            "ok": self.ok and problem is None,
            "problem": problem,
            "facts": dict(started.facts),
            "missing_walls": encode(started.missing_walls),
            "manifest_errors": list(started.manifest_errors),
            "isolation": encode(self.isolation),
            "attempts": encode(self.attempts),
            "exceptions": encode(self.exceptions),
        }
