"""What one examination found."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from freehold.computer.contract.report import Isolation
from freehold.computer.escapes.escape import Verdict
from freehold.doctor.events import AttemptEnded, DoctorEvent, DoctorStarted, ExceptionTried, IsolationFound
from freehold.strict_json import encode


@dataclass(frozen=True)
class DoctorReport:
    """`isolation` is None and `attempts` is empty when a wall is missing: then no computer is started."""

    started: DoctorStarted
    isolation: Isolation | None = None
    attempts: tuple[Verdict, ...] = ()
    exceptions: tuple[ExceptionTried, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no wall is missing, the manifest has no errors, every attempt was refused, and what exceptions allow works."""
        is_sound = not self.started.missing_walls and not self.started.manifest_errors
        return is_sound and not self.failures and all(one.is_right for one in self.exceptions)

    @property
    def failures(self) -> tuple[Verdict, ...]:
        """The attempts that were not refused."""
        return tuple(verdict for verdict in self.attempts if verdict.outcome != "refused")

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "facts": dict(self.started.facts),
            "missing_walls": encode(self.started.missing_walls),
            "manifest_errors": list(self.started.manifest_errors),
            "mounts": encode(self.started.mounts),
            "isolation": encode(self.isolation),
            "attempts": encode(self.attempts),
            "exceptions": encode(self.exceptions),
        }


def collect_report(started: DoctorStarted, events: Iterable[DoctorEvent]) -> DoctorReport:
    """The report of an examination whose events these are, as far as it came."""
    isolation: Isolation | None = None
    attempts: list[Verdict] = []
    exceptions: list[ExceptionTried] = []
    for event in events:
        match event:
            case IsolationFound():
                isolation = event.isolation
            case AttemptEnded():
                attempts.append(event.verdict)
            case ExceptionTried():
                exceptions.append(event)
            case _:
                pass
    return DoctorReport(started, isolation, tuple(attempts), tuple(exceptions))
