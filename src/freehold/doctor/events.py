"""The progress of one examination, and its form as lines of JSON.

{"event": "begun", ...}, {"event": "isolation", ...}, one {"event": "attempt", ...} for each escape attempt, one
{"event": "exception", ...} for each exception that can be tried, and {"event": "ended", "ok": ...}.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from freehold.computer.contract.report import Isolation
from freehold.computer.escapes.escape import Verdict
from freehold.doctor.mounts import FoundMount
from freehold.strict_json import decode, encode


@dataclass(frozen=True)
class MissingWall:
    """A wall that cannot be built on this machine, and how to get it."""

    wall: str
    message: str
    hint: str


@dataclass(frozen=True)
class DoctorStarted:
    """What was found before anything was started. `total` is the number of attempts to come."""

    total: int
    facts: Mapping[str, str]
    missing_walls: tuple[MissingWall, ...]
    manifest_errors: tuple[str, ...]
    mounts: tuple[FoundMount, ...] = ()


@dataclass(frozen=True)
class IsolationFound:
    """How the computer in which the escapes are tried is isolated."""

    isolation: Isolation


@dataclass(frozen=True)
class AttemptEnded:
    verdict: Verdict


@dataclass(frozen=True)
class ExceptionTried:
    """What happened when something that an exception allows was used, sealed. `adds` is everything that it adds."""

    name: str
    adds: tuple[str, ...]
    is_right: bool
    seen: str


@dataclass(frozen=True)
class DoctorEnded:
    ok: bool


DoctorEvent = DoctorStarted | IsolationFound | AttemptEnded | ExceptionTried | DoctorEnded


def encode_event(event: DoctorEvent) -> str:
    """One line of JSON, without its end."""
    match event:
        case DoctorStarted():
            name, content = "begun", encode(event)
        case IsolationFound(isolation):
            name, content = "isolation", encode(isolation)
        case AttemptEnded(verdict):
            name, content = "attempt", encode(verdict)
        case ExceptionTried():
            name, content = "exception", encode(event)
        case DoctorEnded():
            name, content = "ended", encode(event)
    return json.dumps({"event": name, **content})


def decode_event(line: bytes | str) -> DoctorEvent:
    """Raises ValueError for a line that `encode_event` does not write."""
    content = json.loads(line)
    if not isinstance(content, dict):
        raise ValueError("the line is not a JSON object")  # noqa: TRY004 - what callers catch
    match content.pop("event", None):
        case "begun":
            return decode(DoctorStarted, content)
        case "isolation":
            return IsolationFound(decode(Isolation, content))
        case "attempt":
            return AttemptEnded(decode(Verdict, content))
        case "exception":
            return decode(ExceptionTried, content)
        case "ended":
            return decode(DoctorEnded, content)
        case other:
            raise ValueError(f"{other!r} is not an event of the doctor")
