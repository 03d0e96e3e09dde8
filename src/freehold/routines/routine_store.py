"""The routines: added, changed, paused and removed by any process, each change together with its timeline event."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from freehold.errors import FreeholdError
from freehold.routines.clock import Clock
from freehold.routines.records import (
    MANIFEST,
    ROUTINE_COLUMNS,
    Routine,
    encode_spec,
    read_routine,
)
from freehold.routines.rules import TriggerKind, check_routine, trigger_of
from freehold.routines.schedule import find_next, list_following, read_hours, read_schedule, read_zone
from freehold.routines.schema import SCHEMA
from freehold.routines.section import RoutineSection
from freehold.timeline import Json, Timeline, Transaction

MAX_ROUTINES = 20_000
IN_MANIFEST = "It stands in freehold.toml"
_SELECT = f"SELECT {ROUTINE_COLUMNS} FROM routines_routine"  # noqa: S608 - our own words


class RoutineStore:
    """Every method blocks. Safe for several processes: the gateway follows the timeline and learns of each change."""

    def __init__(self, timeline: Timeline, clock: Clock) -> None:
        self.timeline = timeline
        self.clock = clock

    def prepare(self) -> None:
        """Creates or migrates the tables. Call it before anything else. Idempotent."""
        self.timeline.ensure_schema("routines", *SCHEMA)

    # Reading

    def get(self, name: str) -> Routine:
        """Raises `routine.not-found`."""
        found = self.find(name)
        if found is None:
            raise FreeholdError(
                "routine.not-found", f"There is no routine {name!a:.80}", hint="freehold routines lists them"
            )
        return found

    def find(self, name: str) -> Routine | None:
        rows = self.timeline.query(f"{_SELECT} WHERE name = ?", (name,))
        return read_routine(rows[0]) if rows else None

    def list_routines(self, after: str = "", limit: int = 200) -> list[Routine]:
        """By name, those after a name."""
        rows = self.timeline.query(f"{_SELECT} WHERE name > ? ORDER BY name LIMIT ?", (after, limit))
        return [read_routine(row) for row in rows]

    def list_triggered(self, kind: TriggerKind) -> list[Routine]:
        """The routines with this kind of trigger that are not paused."""
        rows = self.timeline.query(f"{_SELECT} WHERE kind = ? AND state = 'on' ORDER BY name", (kind,))
        return [read_routine(row) for row in rows]

    # Changing

    def add(self, name: str, spec: RoutineSection, *, who: str, replace: bool = False) -> Routine:
        """Raises `routine.bad-name`, `routine.bad-value`, `routine.exists` or `routine.too-many`."""
        check_routine(name, spec)
        with self.timeline.transaction() as tx:
            known = _find(tx, name)
            if known is not None and known.source == MANIFEST:
                raise FreeholdError(
                    "routine.exists", f"{name} stands in freehold.toml", hint="Change it there, or use another name"
                )
            if known is not None and not replace:
                raise FreeholdError("routine.exists", f"There is a routine {name} already", hint="Use another name")
            self._put(tx, name, spec, known, source=who, who=who)
        return self.get(name)

    def remove(self, name: str, *, who: str) -> None:
        """The record of its runs stays until their number is used up. Raises `routine.not-found`."""
        with self.timeline.transaction() as tx:
            _check_removable(self._require(tx, name))
            self._remove(tx, name, who)

    def check_removable(self, name: str) -> None:
        """Raises what `remove` would."""
        _check_removable(self.get(name))

    def pause(self, name: str, *, who: str, reason: str | None = None) -> Routine:
        """Idempotent. What has begun goes on; what waits is skipped. Raises `routine.not-found`."""
        with self.timeline.transaction() as tx:
            if self._require(tx, name).state != "paused":
                pause_routine(tx, name, reason, who=who)
        return self.get(name)

    def resume(self, name: str, *, who: str) -> Routine:
        """Its next time is after now. Idempotent. Raises `routine.not-found`."""
        with self.timeline.transaction() as tx:
            known = self._require(tx, name)
            if known.state != "on":
                state, next_time, zone = self._plan(known.spec, known.created)
                tx.execute(
                    "UPDATE routines_routine SET state = ?, reason = NULL, failures = 0, next = ?, zone = ? WHERE name = ?",
                    (state, next_time, zone, name),
                )
                tx.append("routine.resumed", {"routine": name}, who=who)
        return self.get(name)

    def keep_session(self, name: str, session: str) -> None:
        """The session that all further runs go on with."""
        with self.timeline.transaction() as tx:
            tx.execute("UPDATE routines_routine SET session = ? WHERE name = ?", (session, name))

    def list_left_out(self, wanted: Mapping[str, RoutineSection]) -> list[str]:
        """The names of those that `adopt_manifest` would remove."""
        rows = self.timeline.query("SELECT name FROM routines_routine WHERE source = ? ORDER BY name", (MANIFEST,))
        return [name for (name,) in rows if name not in wanted]

    def adopt_manifest(self, wanted: Mapping[str, RoutineSection]) -> None:
        """Brings the routines of the manifest up to date: new ones are added, changed ones changed, others removed.

        One that the owner has paused stays paused until it is resumed.
        """
        with self.timeline.transaction() as tx:
            rows = tx.execute(f"{_SELECT} WHERE source = ?", (MANIFEST,)).fetchall()
            known = {routine.name: routine for routine in map(read_routine, rows)}
            for name in sorted(known.keys() - wanted.keys()):
                self._remove(tx, name, "freehold")
            for name, spec in wanted.items():
                before = known.get(name) or _find(tx, name)
                if before is None or before.source != MANIFEST or encode_spec(before.spec) != encode_spec(spec):
                    self._put(tx, name, spec, before, source=MANIFEST, who="freehold")

    # Positions: how far the events of others were read

    def read_position(self, name: str) -> str | None:
        rows = self.timeline.query("SELECT value FROM routines_position WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def save_position(self, name: str, value: str) -> None:
        with self.timeline.transaction() as tx:
            save_position(tx, name, value)

    # Inside a transaction

    def _put(
        self, tx: Transaction, name: str, spec: RoutineSection, known: Routine | None, *, source: str, who: str
    ) -> None:
        ((count,),) = tx.execute("SELECT count(*) FROM routines_routine").fetchall()
        if known is None and count >= MAX_ROUTINES:
            raise FreeholdError("routine.too-many", f"There are {count} routines already", hint="Remove some of them")
        created = self.clock.now() if known is None else known.created
        state, next_time, zone = self._plan(spec, created)
        if known is not None and known.state == "paused" and spec.enabled and not known.spec.enabled:
            state = "on"  # it was paused by its own key
        elif known is not None and known.state == "paused":
            state = "paused"
        tx.execute(
            "INSERT INTO routines_routine (name, spec, source, kind, state, next, zone, created)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET spec = excluded.spec, source = excluded.source,"
            " kind = excluded.kind, state = excluded.state, next = excluded.next, zone = excluded.zone",
            (
                name,
                encode_spec(spec),
                source,
                trigger_of(spec),
                state,
                None if state == "paused" else next_time,
                zone,
                created,
            ),
        )
        data = {"routine": name, "trigger": trigger_of(spec)}
        tx.append("routine.added" if known is None else "routine.changed", data, who=who)

    def _plan(self, spec: RoutineSection, created: float) -> tuple[str, float | None, str]:
        """Its state, its next time, and the zone for which that was computed."""
        zone = zone_of(spec, self.clock)
        schedule = read_schedule(spec, zone, created)
        next_time = None if schedule is None else find_next(schedule, read_hours(spec.hours, zone), self.clock.now())
        if not spec.enabled:
            return "paused", None, zone_name(zone)
        is_over = schedule is not None and next_time is None
        return "over" if is_over else "on", next_time, zone_name(zone)

    def _remove(self, tx: Transaction, name: str, who: str) -> None:
        tx.execute("DELETE FROM routines_routine WHERE name = ?", (name,))
        why = "The routine was removed"
        due = tx.execute(
            "UPDATE routines_run SET state = 'cancelled', finished = ?, held = 0, error = ? WHERE routine = ?"
            " AND state = 'due' RETURNING id",
            (self.clock.now(), why, name),
        ).fetchall()
        for (run,) in due:
            data: dict[str, Json] = {"routine": name, "run": run, "session": None, "quiet": False, "cost": None}
            tx.append("routine.run_cancelled", {**data, "error": why})
        tx.append("routine.removed", {"routine": name}, who=who)

    @staticmethod
    def _require(tx: Transaction, name: str) -> Routine:
        found = _find(tx, name)
        if found is None:
            raise FreeholdError(
                "routine.not-found", f"There is no routine {name!a:.80}", hint="freehold routines lists them"
            )
        return found


def _find(tx: Transaction, name: str) -> Routine | None:
    row: tuple[Any, ...] | None = tx.execute(f"{_SELECT} WHERE name = ?", (name,)).fetchone()
    return None if row is None else read_routine(row)


def _check_removable(known: Routine) -> None:
    if known.source == MANIFEST:
        raise FreeholdError(
            "routine.conflict", IN_MANIFEST, hint=f"Remove [routines.{known.name}] there, or pause the routine"
        )


def pause_routine(tx: Transaction, name: str, reason: str | None, *, who: str) -> None:
    tx.execute("UPDATE routines_routine SET state = 'paused', reason = ?, next = NULL WHERE name = ?", (reason, name))
    tx.append("routine.paused", {"routine": name, "reason": reason}, who=who)


def save_position(tx: Transaction, name: str, value: str) -> None:
    tx.execute(
        "INSERT INTO routines_position VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (name, value)
    )


def zone_of(spec: RoutineSection, clock: Clock) -> ZoneInfo:
    return clock.zone() if spec.zone is None else read_zone(spec.zone)


def zone_name(zone: ZoneInfo) -> str:
    return zone.key or str(zone)


def plan_times(spec: RoutineSection, clock: Clock, count: int) -> list[datetime]:
    """The next times at which a routine would begin, in its zone; none for one that does not begin at times."""
    zone = zone_of(spec, clock)
    schedule = read_schedule(spec, zone, clock.now())
    if schedule is None:
        return []
    found = list_following(schedule, read_hours(spec.hours, zone), clock.now(), count)
    return [datetime.fromtimestamp(moment, zone) for moment in found]
