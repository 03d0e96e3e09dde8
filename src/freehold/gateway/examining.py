"""The doctor as a program beside the gateway: one at a time, followed line by line, its last report kept."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, Any

from freehold.errors import FreeholdError
from freehold.gateway.topics import Topic
from freehold.home import Home
from freehold.timeline import Timeline

log = logging.getLogger(__name__)

SCHEMA = """
    CREATE TABLE doctor_report (one INTEGER PRIMARY KEY CHECK (one = 1), report TEXT NOT NULL) STRICT;
"""
PATIENCE = 900.0
GRACE = 10.0
MAX_LINE = 256 * 1024
MAX_WORDS = 2_000
NICE = 10

Argv = Callable[[bool], list[str]]


@dataclass
class Examination:
    """One that is under way."""

    who: str
    quick: bool
    since: float = field(default_factory=time.time)
    begun: dict[str, Any] = field(default_factory=dict)
    isolation: dict[str, Any] | None = None
    attempts: list[dict[str, Any]] = field(default_factory=list)
    ok: bool | None = None
    stopped_by: str | None = None
    process: asyncio.subprocess.Process | None = None

    @property
    def total(self) -> int:
        return int(self.begun.get("total", 0))

    def hear(self, line: Mapping[str, Any]) -> None:
        """Raises KeyError or TypeError for a line that the doctor does not write."""
        told = dict(line)
        match told.pop("event"):
            case "begun":
                self.begun = told
            case "isolation":
                self.isolation = told
            case "attempt":
                self.attempts.append({name: str(told[name]) for name in ("name", "claim", "outcome", "seen")})
            case "ended":
                self.ok = bool(told["ok"])
            case other:
                raise KeyError(other)

    def report(self, problem: str | None) -> dict[str, Any]:
        return {
            "at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "who": self.who,
            "quick": self.quick,
            "seconds": round(time.time() - self.since, 1),
            "ok": self.ok is True and problem is None,
            "problem": problem,
            "facts": self.begun.get("facts", {}),
            "missing_walls": self.begun.get("missing_walls", []),
            "manifest_errors": self.begun.get("manifest_errors", []),
            "isolation": self.isolation,
            "attempts": self.attempts,
        }


class Examiner:
    """`run` for the application's life; `start` and `stop` from routes. What happens is told on the topic."""

    def __init__(self, home: Home, timeline: Timeline, topic: Topic, argv: Argv | None = None) -> None:
        self._timeline = timeline
        self._topic = topic
        self._argv = argv or (lambda quick: doctor_argv(home, quick))
        self._group: asyncio.TaskGroup | None = None
        self.current: Examination | None = None

    async def run(self) -> None:
        """Until cancelled; then a doctor that is at work is ended with us."""
        await asyncio.to_thread(self._timeline.ensure_schema, "doctor", SCHEMA)
        async with asyncio.TaskGroup() as self._group:
            await asyncio.Event().wait()

    def last(self) -> dict[str, Any] | None:
        """The report of the last examination that came to its end. Blocking."""
        rows = self._timeline.query("SELECT report FROM doctor_report")
        return json.loads(rows[0][0]) if rows else None

    def start(self, *, quick: bool, who: str) -> None:
        """Raises `doctor.conflict` while one is at work."""
        if self._group is None:
            raise FreeholdError("doctor.not-running", "The gateway is still starting", hint="Try again in a moment")
        if self.current is not None:
            raise FreeholdError(
                "doctor.conflict", "The doctor is at work already", hint="Wait for it, or stop it and begin anew"
            )
        self.current = examination = Examination(who, quick)
        self._topic.publish({"state": "begun", "done": 0, "total": 0})
        self._group.create_task(self._examine(examination))

    def stop(self, *, who: str) -> None:
        """Idempotent. Its report is not kept: half of an examination says nothing."""
        if self.current is not None and self.current.stopped_by is None:
            self.current.stopped_by = who
            _signal(self.current.process, signal.SIGTERM)

    async def _examine(self, examination: Examination) -> None:
        problem: str | None
        try:
            async with asyncio.timeout(PATIENCE):
                problem = await self._follow(examination)
        except TimeoutError:
            problem = f"It was not done within {PATIENCE:.0f} s"
        except OSError as error:
            problem = f"It could not be started: {error}"
        finally:
            self.current = None
        try:
            if examination.stopped_by is not None:
                told = {"attempts": len(examination.attempts)}
                await asyncio.to_thread(self._timeline.append, "doctor.stopped", told, who=examination.stopped_by)
            else:
                await asyncio.to_thread(self._keep, examination.report(problem))
        except FreeholdError as error:
            log.warning("what the doctor found cannot be kept: %s", error)
        self._topic.publish({"state": "ended", "done": len(examination.attempts), "total": examination.total})

    async def _follow(self, examination: Examination) -> str | None:
        """Reads it to its end; what went wrong with it, if anything did."""
        with tempfile.TemporaryFile() as errors:
            process = await asyncio.create_subprocess_exec(
                *self._argv(examination.quick),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=MAX_LINE,
            )
            examination.process = process
            assert process.stdout is not None
            with contextlib.suppress(OSError):
                # Whoever talks to the gateway meanwhile goes first.
                os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
            if examination.stopped_by is not None:
                _signal(process, signal.SIGTERM)
            try:
                while line := await process.stdout.readline():
                    examination.hear(json.loads(line))
                    self._tell(examination)
                code = await process.wait()
            except (ValueError, KeyError, TypeError):
                return "It said something that nobody understands"
            finally:
                await _end(process)
            return None if examination.ok is not None else f"It ended with {code}{_last_words(errors)}"

    def _tell(self, examination: Examination) -> None:
        done = len(examination.attempts)
        latest = examination.attempts[-1] if done else None
        self._topic.publish({"state": "running", "done": done, "total": examination.total, "latest": latest})

    def _keep(self, report: dict[str, Any]) -> None:
        attempts = report["attempts"]
        counted = {
            outcome: sum(attempt["outcome"] == outcome for attempt in attempts)
            for outcome in ("refused", "escaped", "unclear")
        }
        with self._timeline.transaction() as tx:
            tx.execute("INSERT OR REPLACE INTO doctor_report VALUES (1, ?)", (json.dumps(report),))
            told = {"ok": report["ok"], "quick": report["quick"], "problem": report["problem"], **counted}
            tx.append("doctor.examined", told, who=report["who"])


def doctor_argv(home: Home, quick: bool) -> list[str]:
    words = [sys.executable, "-m", "freehold.cli.main", "doctor", "--lines", "--home", str(home.root)]
    return [*words, "--quick"] if quick else words


def _last_words(errors: IO[bytes]) -> str:
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - MAX_WORDS))
    said = errors.read().decode(errors="replace").strip().splitlines()
    return f": {said[-1]}" if said else ""


async def _end(process: asyncio.subprocess.Process) -> None:
    """In good order, so that its computers end with it; by force when it does not listen."""
    if process.returncode is None:
        _signal(process, signal.SIGTERM)
        try:
            async with asyncio.timeout(GRACE):
                await process.wait()
        except TimeoutError:
            _signal(process, signal.SIGKILL)
            await process.wait()


def _signal(process: asyncio.subprocess.Process | None, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        if process is not None and process.returncode is None:
            process.send_signal(number)
