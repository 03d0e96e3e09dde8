"""The runs of routines: due, started, and how each has ended. A change of state and its timeline event are one."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from freehold.errors import FreeholdError
from freehold.routines.records import (
    ROUTINE_COLUMNS,
    RUN_COLUMNS,
    Routine,
    RoutineRun,
    RoutineRunState,
    RunMark,
    read_routine,
    read_run,
)
from freehold.routines.routine_store import RoutineStore, save_position, zone_name, zone_of
from freehold.routines.rules import TIME_TRIGGERS, work_of
from freehold.routines.run_changes import (
    MAX_RETRY_DELAY,
    RunEnd,
    count_failures,
    end_run,
    insert_run,
    may_retry,
    refuse_over_day,
    retry_run,
)
from freehold.routines.schedule import find_next, list_passed, read_hours, read_schedule, read_zone
from freehold.timeline import Json, Transaction

LATE = 60.0
"""Seconds after which a time counts as missed."""
BACKWARDS = 2.0
"""Seconds by which the clock may go back without being set: it is corrected all the time."""
CLOCK_IS_SET = 1_700_000_000.0
"""A machine without a battery starts with a clock that is earlier than this. Nothing is decided by it."""
FAR = 3 * 3600.0
"""Seconds back that are not a correction of the clock any more."""
BATCH = 200
MAX_QUEUED = 20
HOUR = 3600.0
TIMED = "time:"
"""How the cause of a run begins that its own schedule has made."""
MANUAL = "manual:"
"""How the cause of a run begins that somebody asked for."""
REPLACED = "A newer run has replaced it"
_RUN = f"SELECT {RUN_COLUMNS} FROM routines_run"  # noqa: S608 - our own words
_ROUTINE = f"SELECT {ROUTINE_COLUMNS} FROM routines_routine"  # noqa: S608 - our own words


@dataclass(frozen=True)
class Claimed:
    """What `begin_due` has decided: runs that begin now, and runs that must end because a new one replaces them.

    `routines` are those of the runs that begin, by name. `is_cut`: there may be more.
    """

    begun: tuple[RoutineRun, ...]
    replaced: tuple[RoutineRun, ...]
    routines: Mapping[str, Routine]
    is_cut: bool


@dataclass(frozen=True)
class SeenClock:
    """The clock as it was last seen, and how often it was set back: at all, and by more than three hours."""

    moment: float
    zone: str
    sets: int = 0
    far_sets: int = 0

    def make_cause(self, routine: Routine, moment: float) -> str:
        """A time that comes a second time is the same cause, as with cron: a correction of the clock runs nothing twice.

        After a far jump the times of before mean nothing. An interval goes on whatever the clock says.
        """
        count = self.sets if routine.spec.every is not None else self.far_sets
        return f"{TIMED}{count}:{round(moment)}"


class RunStore:
    """Every method blocks. `begin_due` is called by one process, the gateway; the others by any."""

    def __init__(self, routines: RoutineStore) -> None:
        self.routines = routines
        self._timeline = routines.timeline
        self._clock = routines.clock

    # Reading

    def get(self, run: str) -> RoutineRun:
        """Raises `routine.run.not-found`."""
        rows = self._timeline.query(f"{_RUN} WHERE id = ?", (run,))
        if not rows:
            raise FreeholdError("routine.run.not-found", f"There is no run {run!a:.80}", hint="freehold routines log")
        return read_run(rows[0])

    def list_runs(self, routine: str | None = None, *, limit: int = 30, before: int | None = None) -> list[RoutineRun]:
        """The newest first."""
        where, given = ["1 = 1"], list[Any]()
        if routine is not None:
            where, given = [*where, "routine = ?"], [*given, routine]
        if before is not None:
            where, given = [*where, "number < ?"], [*given, before]
        sql = f"{_RUN} WHERE {' AND '.join(where)} ORDER BY number DESC LIMIT ?"
        return [read_run(row) for row in self._timeline.query(sql, (*given, limit))]

    def list_marks(self, routine: str, count: int) -> list[RunMark]:
        """Its last runs, the newest first, without what they were told and said."""
        rows = self._timeline.query(
            "SELECT id, state, due, cost, quiet FROM routines_run WHERE routine = ? ORDER BY number DESC LIMIT ?",
            (routine, count),
        )
        return [RunMark(id, state, due, cost, bool(quiet)) for id, state, due, cost, quiet in rows]

    def list_open(self) -> list[RoutineRun]:
        """The runs that have started and not ended, the oldest first."""
        rows = self._timeline.query(f"{_RUN} WHERE state IN ('started', 'parked') ORDER BY number")
        return [read_run(row) for row in rows]

    def list_open_in(self, session: str) -> list[RoutineRun]:
        """The runs that work in a session, wait there for their turn, or wait there for the owner."""
        rows = self._timeline.query(f"{_RUN} WHERE session = ? AND state IN ('started', 'parked')", (session,))
        return [read_run(row) for row in rows]

    def is_of_routine(self, session: str, routine: str | None = None) -> bool:
        """Whether a routine, or this one, has worked in a session."""
        where, given = "session = ?", [session]
        if routine is not None:
            where, given = f"{where} AND routine = ?", [*given, routine]
        return bool(self._timeline.query(f"SELECT 1 FROM routines_run WHERE {where} LIMIT 1", given))  # noqa: S608

    def find_next_time(self) -> float | None:
        """When something is due next."""
        ((planned,),) = self._timeline.query("SELECT min(next) FROM routines_routine WHERE next IS NOT NULL")
        ((waiting,),) = self._timeline.query("SELECT min(begin) FROM routines_run WHERE state = 'due' AND held = 0")
        found = [moment for moment in (planned, waiting) if moment is not None]
        return min(found) if found else None

    def sum_cost(self, routine: str, since: float) -> float:
        """What the runs of a routine have cost that started since then."""
        ((cost,),) = self._timeline.query(
            "SELECT coalesce(sum(cost), 0) FROM routines_run WHERE routine = ? AND started >= ?", (routine, since)
        )
        return float(cost)

    def count_states(self) -> tuple[dict[str, int], dict[str, int]]:
        """How many routines there are in each state, and how many runs that have not ended."""
        routines = self._timeline.query("SELECT state, count(*) FROM routines_routine GROUP BY state")
        runs = self._timeline.query(
            "SELECT state, count(*) FROM routines_run WHERE state IN ('due', 'started', 'parked') GROUP BY state"
        )
        return dict(routines), dict(runs)

    def list_problems(self) -> list[str]:
        """What the owner should know: a time that has passed and began nothing, and what was paused for its failures."""
        late = self._clock.now() - 2 * LATE
        rows = self._timeline.query("SELECT name FROM routines_routine WHERE next < ? ORDER BY next LIMIT 1", (late,))
        problems = [f"{name} should have begun by now" for (name,) in rows]
        rows = self._timeline.query(
            "SELECT name FROM routines_routine WHERE state = 'paused' AND reason IS NOT NULL ORDER BY name LIMIT 10"
        )
        return problems + [f"{name} is paused, because it failed again and again" for (name,) in rows]

    # Becoming due

    def begin_due(self, *, stopped: str | None = None) -> Claimed:
        """Makes a run for each routine whose time has come, and decides about all that are due, at most so many of each.

        Those that begin are marked as started before anything is done for them. `stopped` says why nothing may begin
        now: every run that is due is then skipped.
        """
        now = self._clock.now()
        with self._timeline.transaction() as tx:
            routines = self._make_all_due(tx, now) if now >= CLOCK_IS_SET else {}
            claimed = self._claim(tx, now, stopped, routines)
            return replace(claimed, is_cut=claimed.is_cut or len(routines) == BATCH)

    def _make_all_due(self, tx: Transaction, now: float) -> dict[str, Routine]:
        """The routines whose time has come, by name."""
        clock = self._note_clock(tx, now)
        rows = tx.execute(f"{_ROUTINE} WHERE next <= ? ORDER BY next LIMIT ?", (now, BATCH)).fetchall()
        here, found = self._clock.zone(), list(map(read_routine, rows))
        for routine in found:
            self._make_due(tx, routine, now, clock, here)
        return {routine.name: routine for routine in found}

    def _make_due(self, tx: Transaction, routine: Routine, now: float, clock: "SeenClock", here: ZoneInfo) -> None:
        spec = routine.spec
        zone = here if spec.zone is None else read_zone(spec.zone)
        schedule, hours = read_schedule(spec, zone, routine.created), read_hours(spec.hours, zone)
        assert schedule is not None
        assert routine.next is not None
        passed = list_passed(schedule, hours, routine.next, now, spec.missed_most + 1) or (routine.next,)
        missed = [moment for moment in passed if now - moment > LATE]
        in_time = [moment for moment in passed if now - moment <= LATE][-1:]
        made_up = {"skip": [], "one": [] if in_time else missed[-1:], "all": missed[-spec.missed_most :]}[spec.missed]
        for moment in (*made_up, *in_time):
            insert_run(tx, routine, clock.make_cause(routine, moment), moment, now, {})
        left_out = [moment for moment in missed if moment not in made_up]
        if left_out:
            data: dict[str, Json] = {"routine": routine.name, "count": len(left_out), "last": round(left_out[-1])}
            tx.append("routine.times_missed", data)
        following = find_next(schedule, hours, now)
        tx.execute(
            "UPDATE routines_routine SET next = ?, zone = ?, state = ? WHERE name = ?",
            (following, zone_name(zone), "over" if following is None else "on", routine.name),
        )

    def _note_clock(self, tx: Transaction, now: float) -> "SeenClock":
        """Computes the next times anew when the clock was set back, or this machine is in another time zone now."""
        row = tx.execute("SELECT value FROM routines_position WHERE name = 'clock'").fetchone()
        here = zone_name(self._clock.zone())
        seen = SeenClock(now, here) if row is None else SeenClock(*json.loads(row[0]))
        current = replace(seen, moment=now, zone=here)
        back = seen.moment - now
        if back > BACKWARDS:
            current = replace(current, sets=seen.sets + 1, far_sets=seen.far_sets + (back > FAR))
            self._plan_again(tx, now, "state = 'on'", ())
            # A retry must not wait for a time that was never meant.
            tx.execute("UPDATE routines_run SET begin = min(begin, ?) WHERE state = 'due'", (now + MAX_RETRY_DELAY,))
            tx.append("routine.clock_set_back", {"seconds": round(back)})
        elif seen.zone != here:
            self._plan_again(tx, now, "state = 'on' AND zone = ?", (seen.zone,))
            tx.append("routine.zone_changed", {"zone": here})
        if row is None or replace(current, moment=seen.moment) != seen or now - seen.moment >= LATE:
            save_position(tx, "clock", json.dumps(astuple(current)))
        return current

    def _plan_again(self, tx: Transaction, now: float, where: str, given: Sequence[object]) -> None:
        kinds = ", ".join(f"'{kind}'" for kind in TIME_TRIGGERS)
        for row in tx.execute(f"{_ROUTINE} WHERE kind IN ({kinds}) AND {where}", given).fetchall():
            routine = read_routine(row)
            zone = zone_of(routine.spec, self._clock)
            schedule, hours = read_schedule(routine.spec, zone, routine.created), read_hours(routine.spec.hours, zone)
            assert schedule is not None
            # What is due is not forgotten: only a time that lies ahead moves.
            if routine.next is not None and routine.next > now:
                following = find_next(schedule, hours, now)
                tx.execute(
                    "UPDATE routines_routine SET next = ?, zone = ? WHERE name = ?",
                    (following, zone_name(zone), routine.name),
                )

    def trigger(
        self,
        name: str,
        cause: str,
        data: Mapping[str, Any],
        *,
        who: str = "freehold",
        position: tuple[str, str] | None = None,
    ) -> RoutineRun | None:
        """A run for something that happened; None when the same cause has made one before. Stored when this returns.

        `position` is saved with it, so that the event is neither lost nor seen twice. Raises `routine.not-found`,
        `routine.paused.conflict` unless somebody asked for it, and `routine.too-many`.
        """
        with self._timeline.transaction() as tx:
            if position is not None:
                save_position(tx, *position)
            row = tx.execute(f"{_ROUTINE} WHERE name = ?", (name,)).fetchone()
            if row is None:
                raise FreeholdError("routine.not-found", f"There is no routine {name!a:.80}")
            routine, now = read_routine(row), self._clock.now()
            if routine.state != "on" and not cause.startswith(MANUAL):
                raise FreeholdError("routine.paused.conflict", f"The routine {name} is {routine.state}")
            self._check_rate(tx, routine, now)
            hours = read_hours(routine.spec.hours, zone_of(routine.spec, self._clock))
            begin = now
            if hours is not None and not hours.contains(now) and not cause.startswith(MANUAL):
                begin = hours.next_begin(now)
            made = insert_run(tx, routine, cause, now, begin, data, who=who)
        return None if made is None else self.get(made)

    def note_refusal(self, name: str, error: FreeholdError) -> None:
        """Records that something happened and began no run."""
        self._timeline.append("routine.trigger_refused", {"routine": name, "code": error.code, "error": error.message})

    @staticmethod
    def _check_rate(tx: Transaction, routine: Routine, now: float) -> None:
        ((recent,),) = tx.execute(
            "SELECT count(*) FROM routines_run WHERE routine = ? AND due > ? AND cause NOT GLOB ?",
            (routine.name, now - HOUR, f"{TIMED}*"),
        ).fetchall()
        if recent >= routine.spec.most_per_hour:
            raise FreeholdError(
                "routine.too-many",
                f"The routine {routine.name} was triggered {recent} times within an hour",
                hint="Its owner can raise most_per_hour",
            )

    # Starting

    def _claim(self, tx: Transaction, now: float, stopped: str | None, routines: Mapping[str, Routine]) -> Claimed:
        """`routines` are those that were read already."""
        begun, replaced, started = list[RoutineRun](), list[RoutineRun](), dict[str, Routine]()
        rows = tx.execute(
            f"{_RUN} WHERE state = 'due' AND held = 0 AND begin <= ? ORDER BY number LIMIT ?", (now, BATCH)
        ).fetchall()
        busy = {name for (name,) in tx.execute("SELECT routine FROM routines_run WHERE state IN ('started', 'parked')")}
        for run in map(read_run, rows):
            routine = routines.get(run.routine) or started.get(run.routine) or _find_routine(tx, run.routine)
            if routine is None:
                end_run(tx, run, RunEnd("cancelled", error="The routine was removed"), now)
                continue
            refusal = stopped or self._refuse(tx, routine, run, now)
            later = self._find_later(routine, run, now)
            if refusal is not None:
                end_run(tx, run, RunEnd("skipped", error=refusal), now)
            elif later is not None:
                tx.execute("UPDATE routines_run SET begin = ? WHERE id = ?", (later, run.id))
            elif routine.name not in busy:
                busy.add(routine.name)
                started[routine.name] = routine
                begun.append(self._start(tx, routine, run, now))
            else:
                replaced += self._overlap(tx, routine, run, now)
        return Claimed(tuple(begun), tuple(replaced), started, len(rows) == BATCH)

    def _overlap(self, tx: Transaction, routine: Routine, run: RoutineRun, now: float) -> list[RoutineRun]:
        """Another run of the routine has not ended. Returns those that the new one replaces."""
        rows = tx.execute(f"{_RUN} WHERE routine = ? AND state IN ('started', 'parked')", (routine.name,)).fetchall()
        others = [read_run(row) for row in rows]
        is_made_up = _is_made_up(routine, run, now)
        if routine.spec.overlap == "skip" and not is_made_up:
            end_run(tx, run, RunEnd("skipped", error=_tell_overlap(others[0])), now)
            return []
        if routine.spec.overlap == "replace" and any(other.number > run.number for other in others):
            end_run(tx, run, RunEnd("skipped", error=REPLACED), now)  # it is tried again too late
            return []
        self._hold(tx, routine, run, now, MAX_QUEUED + (routine.spec.missed_most if is_made_up else 0))
        return others if routine.spec.overlap == "replace" else []

    def _find_later(self, routine: Routine, run: RoutineRun, now: float) -> float | None:
        """When it may begin, if that is later: one that was missed, is tried again or has waited may come out of its hours."""
        hours = read_hours(routine.spec.hours, zone_of(routine.spec, self._clock))
        is_in_time = run.cause.startswith(TIMED) and run.attempt == 1 and now - run.due <= LATE
        if hours is None or is_in_time or run.cause.startswith(MANUAL) or hours.contains(now):
            return None
        return hours.next_begin(now)

    def _refuse(self, tx: Transaction, routine: Routine, run: RoutineRun, now: float) -> str | None:
        """Why it may not begin, if so. That the budget of a day is used up is told once a day."""
        if routine.state == "paused" and not run.cause.startswith(MANUAL):
            return "The routine is paused"
        if routine.spec.budget_day is not None:
            since = self.find_day_begin(routine, now)
            ((spent,),) = tx.execute(
                "SELECT coalesce(sum(cost), 0) FROM routines_run WHERE routine = ? AND started >= ?",
                (routine.name, since),
            ).fetchall()
            if spent >= routine.spec.budget_day:
                return refuse_over_day(tx, routine.name, spent, routine.spec.budget_day, since)
        return None

    def find_most(self, routine: Routine, run: RoutineRun) -> float | None:
        """What an attempt of a run may cost: what is left of its budget and of that of the day. None without a bound."""
        spec, left = routine.spec, list[float]()
        if spec.budget is not None:
            left.append(spec.budget - (run.cost or 0.0))
        if spec.budget_day is not None:
            since = self.find_day_begin(routine, self._clock.now())
            left.append(spec.budget_day - self.sum_cost(routine.name, since))
        return max(0.0, min(left)) if left else None

    def find_day_begin(self, routine: Routine, now: float) -> float:
        here = datetime.fromtimestamp(now, zone_of(routine.spec, self._clock))
        return here.replace(hour=0, minute=0, second=0, microsecond=0, fold=0).timestamp()

    def _start(self, tx: Transaction, routine: Routine, run: RoutineRun, now: float) -> RoutineRun:
        session = None
        if work_of(routine.spec) in ("prompt", "checklist"):
            named = None if routine.spec.session in ("new", "same") else routine.spec.session
            kept = routine.session if routine.spec.session == "same" else None
            # Known before the session is made: after a crash we know whether it was.
            session = named or kept or secrets.token_hex(8)
        row = tx.execute(
            "UPDATE routines_run SET state = 'started', started = ?, session = ?, turn = NULL, held = 0, error = NULL,"  # noqa: S608
            f" work = ? WHERE id = ? RETURNING {RUN_COLUMNS}",
            (now, session, work_of(routine.spec), run.id),
        ).fetchone()
        data: dict[str, Json] = {
            "routine": run.routine,
            "run": run.id,
            "attempt": run.attempt,
            "session": session,
        }
        tx.append("routine.run_started", data)
        return read_run(row)

    @staticmethod
    def _hold(tx: Transaction, routine: Routine, run: RoutineRun, now: float, most: int) -> None:
        """It waits for the end of the run before. Of two that would replace it, the newer one is enough."""
        held = tx.execute(
            f"{_RUN} WHERE routine = ? AND state = 'due' AND held = 1 AND id != ? ORDER BY number",
            (run.routine, run.id),
        ).fetchall()
        if routine.spec.overlap == "replace":
            for older in map(read_run, held):
                if older.number < run.number:
                    end_run(tx, older, RunEnd("skipped", error=REPLACED), now)
        elif not run.held and len(held) >= most:
            end_run(tx, run, RunEnd("skipped", error=f"{len(held)} runs wait already"), now)
            return
        tx.execute("UPDATE routines_run SET held = 1 WHERE id = ?", (run.id,))

    # Going on and ending

    def note_turn(self, run: str, session: str, turn: int) -> None:
        with self._timeline.transaction() as tx:
            tx.execute("UPDATE routines_run SET session = ?, turn = ? WHERE id = ?", (session, turn, run))

    def move(self, run: str, state: RoutineRunState, *, why: str | None = None) -> bool:
        """Between `started` and `parked`. False when it is neither, or is there already."""
        other = "parked" if state == "started" else "started"
        with self._timeline.transaction() as tx:
            row = tx.execute(
                "UPDATE routines_run SET state = ?, error = ? WHERE id = ? AND state = ? RETURNING routine, session",
                (state, why, run, other),
            ).fetchone()
            if row is None:
                return False
            kind = "routine.run_parked" if state == "parked" else "routine.run_resumed"
            tx.append(kind, {"routine": row[0], "run": run, "session": row[1]})
        return True

    def end(self, run: str, how: RunEnd) -> RoutineRun | None:
        """Stores how it has ended; a failed one may become due again, unless its budget is used up. None when it has
        ended already."""
        now = self._clock.now()
        with self._timeline.transaction() as tx:
            row = tx.execute(f"{_RUN} WHERE id = ? AND state IN ('started', 'parked', 'due')", (run,)).fetchone()
            if row is None:
                return None
            found = read_run(row)
            known = tx.execute(f"{_ROUTINE} WHERE name = ?", (found.routine,)).fetchone()
            routine = None if known is None else read_routine(known)
            if routine is not None and how.state == "failed" and may_retry(routine, found, how):
                retry_run(tx, routine, found, how, now)
            else:
                end_run(tx, found, how, now)
                if routine is not None:
                    count_failures(tx, routine, how)
        return self.get(run)


def _find_routine(tx: Transaction, name: str) -> Routine | None:
    row = tx.execute(f"{_ROUTINE} WHERE name = ?", (name,)).fetchone()
    return None if row is None else read_routine(row)


def _is_made_up(routine: Routine, run: RoutineRun, now: float) -> bool:
    """Whether it is one of several times that were missed. Those wait for each other, also where runs are skipped."""
    return routine.spec.missed == "all" and run.cause.startswith(TIMED) and now - run.due > LATE


def _tell_overlap(other: RoutineRun) -> str:
    state = "waits for you" if other.state == "parked" else "has not ended"
    return f"The run {other.id} {state}"
