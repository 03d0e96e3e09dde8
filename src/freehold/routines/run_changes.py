"""What happens to one run inside a transaction: it becomes due, ends, is tried again or is forgotten, with its timeline event."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from freehold.errors import FreeholdError
from freehold.routines.records import Routine, RoutineRun, RoutineRunState
from freehold.routines.routine_store import pause_routine
from freehold.timeline import Json, Transaction

MAX_KEPT = 500
"""Runs of one routine that are kept as a whole."""
COUNTED = 26 * 3600.0
"""Seconds for which every run is known: it counts for the budget of its day, and its cause begins no second one."""
PRUNE_INTERVAL = 16
MAX_TEXT = 8_000
MAX_TOLD = 500
MAX_DATA = 512 * 1024
MAX_RETRY_DELAY = 6 * 3600.0
OVER_DAY = "The runs of today have cost"
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"


@dataclass(frozen=True)
class RunEnd:
    """How a run has ended. `cost` in US dollars, None when it is not known."""

    state: RoutineRunState
    result: str | None = None
    error: str | None = None
    cost: float | None = None
    quiet: bool = False


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
    # Half characters, such as of a file name that is not UTF-8, are replaced: no answer of the API can have them.
    encoded = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace").decode()
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
        prune_runs(tx, routine.name, due)
    tx.append("routine.run_due", {"routine": routine.name, "run": id, "cause": cause[:100]}, who=who)
    return id


def prune_runs(tx: Transaction, routine: str, now: float) -> None:
    """Of runs that are many, what they were told and said is forgotten; the rest of them when they count no more."""
    row = tx.execute(
        "SELECT number FROM routines_run WHERE routine = ? ORDER BY number DESC LIMIT 1 OFFSET ?", (routine, MAX_KEPT)
    ).fetchone()
    if row is None:
        return
    old = "WHERE routine = ? AND finished IS NOT NULL AND number <= ?"
    tx.execute(f"DELETE FROM routines_run {old} AND due < ?", (routine, row[0], now - COUNTED))  # noqa: S608 - our own words
    forgotten = f"UPDATE routines_run SET data = '{{}}', result = NULL {old} AND (data <> '{{}}' OR result IS NOT NULL)"  # noqa: S608
    tx.execute(forgotten, (routine, row[0]))


def end_run(tx: Transaction, run: RoutineRun, how: RunEnd, now: float) -> None:
    tx.execute(
        "UPDATE routines_run SET state = ?, finished = ?, held = 0, cost = ?, quiet = ?, result = ?, error = ?"
        " WHERE id = ?",
        (how.state, now, _add(run.cost, how.cost), how.quiet, _cut(how.result), _cut(how.error), run.id),
    )
    data: dict[str, Json] = {"routine": run.routine, "run": run.id, "session": run.session}
    data.update(turn=run.turn, quiet=how.quiet, cost=how.cost)
    if run.session is None and how.result:
        data["result"] = how.result[-MAX_TOLD:]  # of a command or a workflow; what an agent says is in its session
    tx.append(f"routine.run_{how.state}", {**data, "error": None if how.error is None else how.error[:500]})
    # Whoever waits for its end is looked at again.
    tx.execute("UPDATE routines_run SET held = 0 WHERE routine = ? AND state = 'due' AND held = 1", (run.routine,))


def refuse_over_day(tx: Transaction, routine: str, spent: float, most: float, since: float) -> str:
    """Why a run does not begin whose routine has spent its budget since the begin of the day. The first one is told."""
    told = tx.execute(
        "SELECT 1 FROM routines_run WHERE routine = ? AND state = 'skipped' AND finished >= ? AND substr(error, 1, ?) = ?",
        (routine, since, len(OVER_DAY), OVER_DAY),
    ).fetchone()
    if told is None:
        tx.append("routine.budget_reached", {"routine": routine, "spent": round(spent, 4), "of": most})
    return f"{OVER_DAY} {spent:.2f} US dollars; budget_day is {most:.2f}"


def may_retry(routine: Routine, run: RoutineRun, how: RunEnd) -> bool:
    """All attempts share one budget."""
    budget = routine.spec.budget
    is_spent = budget is not None and (_add(run.cost, how.cost) or 0.0) >= budget
    return run.attempt <= routine.spec.retries and not is_spent


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


def _add(before: float | None, cost: float | None) -> float | None:
    """All attempts of a run count."""
    return before if cost is None else (before or 0.0) + cost


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
