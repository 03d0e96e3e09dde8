"""Runs the doctor for the gateway: one examination at a time, its progress on a topic, its last report stored."""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from freehold.errors import FreeholdError
from freehold.gateway.topics import Topic
from freehold.home import Home
from freehold.strict_json import encode
from freehold.timeline import Timeline

if TYPE_CHECKING:
    from freehold.gateway.doctor_run import DoctorRun

log = logging.getLogger(__name__)

SCHEMA = """
    CREATE TABLE doctor_report (one INTEGER PRIMARY KEY CHECK (one = 1), report TEXT NOT NULL) STRICT;
"""

Command = Callable[[bool], list[str]]


class DoctorRunner:
    """`run` lasts as long as the application; routes call `start` and `stop`."""

    def __init__(self, home: Home, timeline: Timeline, topic: Topic, command: Command | None = None) -> None:
        self._timeline = timeline
        self._topic = topic
        self._home = home
        self._command = command
        self._group: asyncio.TaskGroup | None = None
        self._has_table = False
        self.current: DoctorRun | None = None

    async def run(self) -> None:
        """Until cancelled. An examination that runs then is ended."""
        async with asyncio.TaskGroup() as self._group:
            await asyncio.Event().wait()

    def read_last_report(self) -> dict[str, Any] | None:
        """The report of the last examination that was not stopped. Blocking."""
        self._make_table()
        rows = self._timeline.query("SELECT report FROM doctor_report")
        if not rows:
            return None
        report: dict[str, Any] = json.loads(rows[0][0])
        isolation = report["isolation"]
        if isolation is not None and "uid" in isolation:  # written by Freehold 0.1.0
            isolation["runs_as"] = f"uid {isolation.pop('uid')}"
        return report

    def _make_table(self) -> None:
        """At its first use: a gateway that starts is asked before it has done all that it does in the background."""
        if not self._has_table:
            self._timeline.ensure_schema("doctor", SCHEMA)
            self._has_table = True

    def start(self, *, quick: bool, who: str) -> None:
        """Raises `doctor.conflict` while an examination runs."""
        if self._group is None:
            raise FreeholdError("doctor.not-running", "The gateway is still starting", hint="Try again in a moment")
        if self.current is not None:
            raise FreeholdError(
                "doctor.conflict", "An examination is already running", hint="Wait until it ends, or stop it"
            )
        from freehold.doctor import DoctorProcess, doctor_command
        from freehold.gateway.doctor_run import DoctorRun

        command = doctor_command(self._home, quick) if self._command is None else self._command(quick)
        self.current = run = DoctorRun(who, quick, DoctorProcess(command))
        self._topic.publish({"state": "begun", "done": 0, "total": 0})
        self._group.create_task(self._follow(run))

    def stop(self, *, who: str) -> None:
        """Idempotent. The report of a stopped examination is not stored."""
        if self.current is not None and self.current.stopped_by is None:
            self.current.stopped_by = who
            self.current.process.stop()

    async def _follow(self, run: "DoctorRun") -> None:
        try:
            problem = await run.follow(lambda: self._publish_progress(run))
        finally:
            self.current = None
        try:
            if run.stopped_by is not None:
                data = {"attempts": len(run.attempts)}
                await asyncio.to_thread(self._timeline.append, "doctor.stopped", data, who=run.stopped_by)
            else:
                await asyncio.to_thread(self._store_report, run.make_report(problem))
        except FreeholdError as error:
            log.warning("the doctor's report cannot be stored: %s", error)
        self._topic.publish({"state": "ended", "done": len(run.attempts), "total": run.total})

    def _publish_progress(self, run: "DoctorRun") -> None:
        done = len(run.attempts)
        latest = encode(run.attempts[-1]) if done else None
        self._topic.publish({"state": "running", "done": done, "total": run.total, "latest": latest})

    def _store_report(self, report: dict[str, Any]) -> None:
        outcomes = [attempt["outcome"] for attempt in report["attempts"]]
        counts = {outcome: outcomes.count(outcome) for outcome in ("refused", "escaped", "unclear")}
        self._make_table()
        with self._timeline.transaction() as tx:
            tx.execute("INSERT OR REPLACE INTO doctor_report VALUES (1, ?)", (json.dumps(report),))
            data = {"ok": report["ok"], "quick": report["quick"], "problem": report["problem"], **counts}
            tx.append("doctor.examined", data, who=report["who"])
