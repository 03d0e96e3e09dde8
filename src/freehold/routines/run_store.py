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
from freehold.routines.routine_store import RoutineStore, pause_routine, save_position, zone_name, zone_of
from freehold.routines.rules import TIME_TRIGGERS, work_of
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
MAX_KEPT = 500
"""Runs of one routine that are kept."""
PRUNE_INTERVAL = 16
MAX_TEXT = 8_000
MAX_TOLD = 500
MAX_DATA = 512 * 1024
MAX_RETRY_DELAY = 6 * 3600.0
HOUR = 3600.0
MANUAL = "manual:"
"""How the cause of a run begins that somebody asked for."""
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
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
        return f"time:{count}:{round(moment)}"


@dataclass(frozen=True)
class RunEnd:
    """How a run has ended. `cost` in US dollars, None when it is not known."""

    state: RoutineRunState
    result: str | None = None
    error: str | None = None
    cost: float | None = None
    quiet: bool = False


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

    def find_open(self, session: str) -> RoutineRun | None:
        """The run that works in a session, or waits there for the owner."""
        rows = self._timeline.query(f"{_RUN} WHERE session = ? AND state IN ('started', 'parked')", (session,))
        return read_run(rows[0]) if rows else None

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
            "SELECT count(*) FROM routines_run WHERE routine = ? AND due > ?", (routine.name, now - HOUR)
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
            refusal = stopped or self._find_refusal(tx, routine, run, now)
            if refusal is not None:
                end_run(tx, run, RunEnd("skipped", error=refusal), now)
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
        if routine.spec.overlap == "skip":
            end_run(tx, run, RunEnd("skipped", error=_tell_overlap(others[0])), now)
            return []
        self._hold(tx, routine, run, now)
        return others if routine.spec.overlap == "replace" else []

    def _find_refusal(self, tx: Transaction, routine: Routine, run: RoutineRun, now: float) -> str | None:
        if routine.state == "paused" and not run.cause.startswith(MANUAL):
            return "The routine is paused"
        if routine.spec.budget_day is not None:
            ((spent,),) = tx.execute(
                "SELECT coalesce(sum(cost), 0) FROM routines_run WHERE routine = ? AND started >= ?",
                (routine.name, self.find_day_begin(routine, now)),
            ).fetchall()
            if spent >= routine.spec.budget_day:
                return (
                    f"The runs of today have cost {spent:.2f} US dollars; budget_day is {routine.spec.budget_day:.2f}"
                )
        return None

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
    def _hold(tx: Transaction, routine: Routine, run: RoutineRun, now: float) -> None:
        """It waits for the end of the run before. Of two that would replace it, the newer one is enough."""
        held = tx.execute(
            f"{_RUN} WHERE routine = ? AND state = 'due' AND held = 1 AND id != ? ORDER BY number",
            (run.routine, run.id),
        ).fetchall()
        if routine.spec.overlap == "replace":
            for older in map(read_run, held):
                if older.number < run.number:
                    end_run(tx, older, RunEnd("skipped", error="A newer run has replaced it"), now)
        elif not run.held and len(held) >= MAX_QUEUED:
            end_run(tx, run, RunEnd("skipped", error=f"{MAX_QUEUED} runs wait already"), now)
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
        """Stores how it has ended; a failed one may become due again. None when it has ended already."""
        now = self._clock.now()
        with self._timeline.transaction() as tx:
            row = tx.execute(f"{_RUN} WHERE id = ? AND state IN ('started', 'parked', 'due')", (run,)).fetchone()
            if row is None:
                return None
            found = read_run(row)
            known = tx.execute(f"{_ROUTINE} WHERE name = ?", (found.routine,)).fetchone()
            routine = None if known is None else read_routine(known)
            if routine is not None and how.state == "failed" and found.attempt <= routine.spec.retries:
                retry_run(tx, routine, found, how, now)
            else:
                end_run(tx, found, how, now)
                if routine is not None:
                    count_failures(tx, routine, how)
        return self.get(run)


def _find_routine(tx: Transaction, name: str) -> Routine | None:
    row = tx.execute(f"{_ROUTINE} WHERE name = ?", (name,)).fetchone()
    return None if row is None else read_routine(row)


def insert_run(
    tx: Transaction,
    routine: Routine,
    cause: str,
    due: float,
    begin: float,
    data: Mapping[str, Any],
    *,
    who: str = "freehold",
) -> str | None:
    """The id of the new run; None when this cause has made one already."""
    id = "".join(_LETTERS[byte % len(_LETTERS)] for byte in secrets.token_bytes(10))
    encoded = json.dumps(data)
    if len(encoded) > MAX_DATA:
        raise FreeholdError("routine.too-large", f"What triggered {routine.name} is longer than {MAX_DATA} characters")
    made = tx.execute(
        "INSERT INTO routines_run (id, routine, cause, due, begin, state, data) VALUES (?, ?, ?, ?, ?, 'due', ?)"
        " ON CONFLICT (routine, cause) DO NOTHING",
        (id, routine.name, cause, due, begin, encoded),
    ).rowcount
    if not made:
        return None
    if secrets.randbelow(PRUNE_INTERVAL) == 0:  # a few more than wanted do no harm
        tx.execute(
            "DELETE FROM routines_run WHERE routine = ? AND finished IS NOT NULL AND number <= (SELECT number FROM"
            " routines_run WHERE routine = ? ORDER BY number DESC LIMIT 1 OFFSET ?)",
            (routine.name, routine.name, MAX_KEPT),
        )
    tx.append("routine.run_due", {"routine": routine.name, "run": id, "cause": cause[:100]}, who=who)
    return id


def end_run(tx: Transaction, run: RoutineRun, how: RunEnd, now: float) -> None:
    tx.execute(
        "UPDATE routines_run SET state = ?, finished = ?, held = 0, cost = ?, quiet = ?, result = ?, error = ?"
        " WHERE id = ?",
        (how.state, now, _add(run.cost, how.cost), how.quiet, _cut(how.result), _cut(how.error), run.id),
    )
    data: dict[str, Json] = {"routine": run.routine, "run": run.id, "session": run.session}
    data.update(quiet=how.quiet, cost=how.cost)
    if run.session is None and how.result:
        data["result"] = how.result[-MAX_TOLD:]  # of a command or a workflow; what an agent says is in its session
    tx.append(f"routine.run_{how.state}", {**data, "error": None if how.error is None else how.error[:500]})
    # Whoever waits for its end is looked at again.
    tx.execute("UPDATE routines_run SET held = 0 WHERE routine = ? AND state = 'due' AND held = 1", (run.routine,))


def retry_run(tx: Transaction, routine: Routine, run: RoutineRun, how: RunEnd, now: float) -> None:
    """The same run becomes due again, later each time."""
    delay = min(routine.spec.retry_delay * 2.0 ** (run.attempt - 1), MAX_RETRY_DELAY)
    tx.execute(
        "UPDATE routines_run SET state = 'due', begin = ?, attempt = attempt + 1, session = NULL, turn = NULL,"
        " cost = ?, error = ? WHERE id = ?",
        (now + delay, _add(run.cost, how.cost), _cut(how.error), run.id),
    )
    data: dict[str, Json] = {
        "routine": run.routine,
        "run": run.id,
        "attempt": run.attempt,
        "seconds": round(delay),
    }
    tx.append("routine.run_retried", {**data, "error": (how.error or "")[:500]})


def count_failures(tx: Transaction, routine: Routine, how: RunEnd) -> None:
    """Pauses a routine that has failed too often in a row."""
    if how.state not in ("done", "failed"):
        return
    failures = routine.failures + 1 if how.state == "failed" else 0
    tx.execute("UPDATE routines_routine SET failures = ? WHERE name = ?", (failures, routine.name))
    if failures >= routine.spec.pause_after and routine.state == "on":
        reason = f"It failed {failures} times in a row. The last time: {(how.error or 'no reason')[:300]}"
        pause_routine(tx, routine.name, reason, who="freehold")


def _tell_overlap(other: RoutineRun) -> str:
    state = "waits for you" if other.state == "parked" else "has not ended"
    return f"The run {other.id} {state}"


def _add(before: float | None, cost: float | None) -> float | None:
    """All attempts of a run count."""
    return before if cost is None else (before or 0.0) + cost


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
