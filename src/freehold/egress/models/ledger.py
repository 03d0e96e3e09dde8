"""The store of usage, budgets and the kill switch, in the timeline's file, with an event a change."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from freehold.egress.models.budget import ALL, LIMIT_NAMES, BudgetLimits, CrossedLimit, LimitName, Spending, period_of
from freehold.egress.models.schema import SCHEMA
from freehold.egress.models.usage import ModelUsage, TokenCounts
from freehold.errors import FreeholdError
from freehold.strict_json import IsoTime
from freehold.timeline import Json, Timeline, Transaction

ReportGrouping = Literal["day", "day_model", "model", "session", "turn", "provider"]

CHANGES = ("models.stopped", "models.resumed", "models.budget_changed", "models.budget_lifted")
"""The events after which the model gateway reads its state again."""

_GROUPS: Mapping[str, tuple[str, ...]] = {
    "day": ("day",),
    "day_model": ("day", "provider", "model"),
    "model": ("provider", "model"),
    "provider": ("provider",),
    "session": ("session",),
}
_SUMS = (
    "coalesce(sum(requests), 0), coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cached), 0), "
    "coalesce(sum(written), 0), coalesce(sum(cost), 0), coalesce(sum((cost IS NULL) * requests), 0), "
    "coalesce(sum(assumed), 0), coalesce(sum(estimated), 0)"
)
_STORED_SUMS = "requests, input, output, cached, written, cost, unpriced, assumed, estimated"
_DAY_SUMS = ", ".join(f"sum({name})" for name in _STORED_SUMS.split(", "))
_TURN_ROWS = 2000
"""Rows that are read at once to find the newest turns."""


def now_text(timespec: Literal["milliseconds", "microseconds"] = "milliseconds") -> str:
    return datetime.now(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


@dataclass(frozen=True)
class UsageRecord:
    """The record of one request to a provider."""

    provider: str
    model: str
    session: str
    turn: str | None
    tokens: TokenCounts
    cost: float | None
    estimated: bool
    outcome: str
    at: str = field(default_factory=now_text)
    assumed: bool = False
    """Whether the price is not in the table, and the dearest of the provider was taken."""


@dataclass(frozen=True)
class ActiveStop:
    """The kill switch while it is on: since when, who pulled it and why."""

    at: IsoTime
    who: str
    why: str


@dataclass(frozen=True)
class UsageReportRow:
    """A row of a report: the values that it is grouped by, and the usage."""

    key: tuple[str | None, ...]
    usage: ModelUsage


def ensure_tables(timeline: Timeline) -> None:
    timeline.ensure_schema("models", *SCHEMA)


@dataclass(frozen=True)
class Ledger:
    """Blocking calls. The tables must exist (`ensure_tables`)."""

    timeline: Timeline

    def close(self, record: UsageRecord, milliseconds: int, crossed: list[CrossedLimit]) -> list[CrossedLimit]:
        """Records the cost of a request with its event. Returns those of `crossed` that were not reported before."""
        tokens = record.tokens
        with self.timeline.transaction() as tx:
            _insert(tx, record)
            data: dict[str, Json] = {
                "provider": record.provider,
                "model": record.model,
                "session": record.session,
                "turn": record.turn,
                "input": tokens.input,
                "output": tokens.output,
                "cached": tokens.cached,
                "cost": record.cost,
                "estimated": record.estimated,
                "assumed": record.assumed,
                "outcome": record.outcome,
                "milliseconds": milliseconds,
            }
            tx.append("models.answered", data, who=f"session:{record.session}"[:256])
            return [each for each in crossed if _report_once(tx, each)]

    def record_reached(self, crossed: CrossedLimit) -> None:
        """Records that a request was refused for this limit. Makes one event a day or month."""
        with self.timeline.transaction() as tx:
            _report_once(tx, crossed)

    def reached(self) -> set[tuple[str, LimitName, str]]:
        """Limits by scope, name and period for which something was refused or cut."""
        return self._marked("reached")

    def close_lost(self, lost: Sequence[UsageRecord] = ()) -> int:
        """Records requests that a killed gateway left open. They count at their most. Idempotent."""
        with self.timeline.transaction() as tx:
            # Rows of a Freehold that recorded running requests here.
            count = tx.execute("UPDATE models_usage SET outcome = 'lost' WHERE outcome = 'open'").rowcount
            for record in lost:
                # It may have been recorded just before the end. No two requests of a session begin at once.
                same = (record.at, record.session, record.provider)
                sql = "SELECT 1 FROM models_usage WHERE at = ? AND session = ? AND provider = ?"
                if tx.execute(sql, same).fetchone() is None:
                    _insert(tx, replace(record, outcome="lost"))
                    count += 1
            if count:
                tx.append("models.requests_lost", {"count": count})
            return count

    def spent(self, now: datetime) -> dict[tuple[str, str], Spending]:
        """By scope and period, for the current day and month."""
        found: dict[tuple[str, str], Spending] = {}
        for what in ("day_cost", "month_cost"):
            period = period_of(what, now)
            rows = self.timeline.query(
                "SELECT provider, sum(input + output), coalesce(sum(cost), 0), sum((cost IS NULL) * requests),"
                " sum(assumed) FROM models_usage"
                " WHERE at >= ? AND at < ? GROUP BY provider",
                (period, period + "~"),
            )
            whole = Spending()
            for provider, *sums in rows:
                found[provider, period] = Spending(*sums)
                whole.add(found[provider, period])
            found[ALL, period] = whole
        return found

    def usage(self, session: str, turn: str | None = None) -> ModelUsage:
        """The usage of a session, or of one turn of it, without requests that still run."""
        where, values = ("session = ?", [session]) if turn is None else ("session = ? AND turn = ?", [session, turn])
        sql = f"SELECT {_SUMS} FROM models_usage WHERE {where} AND outcome != 'open'"  # noqa: S608 - constant text only
        return _usage(self.timeline.query(sql, values)[0])

    def report(self, by: ReportGrouping, *, since: str = "", limit: int = 1000) -> list[UsageReportRow]:
        """The newest first; `since` is a day such as 2026-11-01. What is older than the last row is not read."""
        if by == "turn":
            return self._report_turns(since, limit)
        given: tuple[str | int, ...] = (since, limit)
        columns = _GROUPS[by]
        group = ", ".join(columns)
        if by == "session" and not since:
            sql = f"SELECT session, {_STORED_SUMS} FROM models_usage_by_session ORDER BY last DESC LIMIT ?"  # noqa: S608 - constant text only
            given = (limit,)
        elif by == "day_model":
            source = f"SELECT {group}, {_STORED_SUMS} FROM models_usage_by_model WHERE day >= ?"  # noqa: S608 - likewise
            sql = f"{source} ORDER BY day DESC, last DESC LIMIT ?"
        else:
            table = "models_usage_day" if by == "session" else "models_usage_by_model"
            order = "day" if by == "day" else "max(last)"
            source = f"SELECT {group}, {_DAY_SUMS} FROM {table} WHERE day >= ?"  # noqa: S608 - likewise
            sql = f"{source} GROUP BY {group} ORDER BY {order} DESC LIMIT ?"
        width = len(columns)
        return [UsageReportRow(row[:width], _usage(row[width:])) for row in self.timeline.query(sql, given)]

    def _report_turns(self, since: str, limit: int) -> list[UsageReportRow]:
        newest = self._find_newest_turns(since, limit)
        sql = (
            f"SELECT session, turn, {_SUMS} FROM json_each(?) JOIN models_usage ON session = json_extract(value, '$[0]') "  # noqa: S608 - likewise
            "AND turn IS json_extract(value, '$[1]') WHERE at >= ? GROUP BY session, turn"
        )
        found = {row[:2]: _usage(row[2:]) for row in self.timeline.query(sql, (json.dumps(newest), since))}
        return [UsageReportRow(turn, found[turn]) for turn in newest if turn in found]

    def _find_newest_turns(self, since: str, limit: int) -> list[tuple[str, str | None]]:
        found: dict[tuple[str, str | None], None] = {}
        last: tuple[str, int] = ("~", 0)
        while len(found) < limit:
            rows = self.timeline.query(
                "SELECT at, id, session, turn FROM models_usage WHERE at >= ? AND (at, id) < (?, ?)"
                " ORDER BY at DESC, id DESC LIMIT ?",
                (since, *last, _TURN_ROWS),
            )
            found.update(dict.fromkeys(row[2:] for row in rows))
            if len(rows) < _TURN_ROWS:
                break
            last = rows[-1][:2]
        return list(found)[:limit]

    def budgets(self) -> dict[str, BudgetLimits]:
        """Budgets that the owner set while Freehold ran. They replace those of the manifest."""
        columns = ", ".join(LIMIT_NAMES)
        rows = self.timeline.query(f"SELECT scope, {columns} FROM models_budget")  # noqa: S608 - likewise
        return {scope: BudgetLimits(*values) for scope, *values in rows}

    def set_budget(self, scope: str, limits: BudgetLimits | None, *, who: str = "owner") -> None:
        """None restores the manifest's budget. Idempotent."""
        _check(limits)
        with self.timeline.transaction() as tx:
            tx.execute("DELETE FROM models_budget WHERE scope = ?", (scope,))
            data: dict[str, Json] = {"scope": scope}
            if limits is not None:
                values = [getattr(limits, what) for what in LIMIT_NAMES]
                tx.execute("INSERT INTO models_budget VALUES (?, ?, ?, ?, ?)", (scope, *values))
                data |= dict(limits.named())
            # Warnings about the old limits are given again for the new ones.
            tx.execute("DELETE FROM models_mark WHERE scope = ? AND state != 'lifted'", (scope,))
            tx.append("models.budget_changed", data, who=who)

    def lift(self, scope: str, what: LimitName, now: datetime, *, who: str = "owner") -> None:
        """Ignores a limit for the rest of the day or month. Idempotent."""
        period = period_of(what, now)
        with self.timeline.transaction() as tx:
            tx.execute("INSERT OR IGNORE INTO models_mark VALUES (?, ?, ?, 'lifted')", (scope, what, period))
            tx.append("models.budget_lifted", {"scope": scope, "limit": what, "period": period}, who=who)

    def lifted(self) -> set[tuple[str, LimitName, str]]:
        return self._marked("lifted")

    def _marked(self, state: str) -> set[tuple[str, LimitName, str]]:
        rows = self.timeline.query("SELECT scope, what, period FROM models_mark WHERE state = ?", (state,))
        return {(scope, what, period) for scope, what, period in rows}

    def stop(self, *, who: str = "owner", why: str = "") -> None:
        """No model request is sent until `resume`. Idempotent."""
        with self.timeline.transaction() as tx:
            tx.execute("INSERT OR IGNORE INTO models_stop VALUES (1, ?, ?, ?)", (now_text(), who, why))
            tx.append("models.stopped", {"why": why}, who=who)

    def resume(self, *, who: str = "owner") -> None:
        """Idempotent."""
        with self.timeline.transaction() as tx:
            if tx.execute("DELETE FROM models_stop").rowcount:
                tx.append("models.resumed", who=who)

    def stopped(self) -> ActiveStop | None:
        rows = self.timeline.query("SELECT at, who, why FROM models_stop")
        return ActiveStop(*rows[0]) if rows else None


def _insert(tx: Transaction, record: UsageRecord) -> None:
    tokens = record.tokens
    counts = (tokens.input, tokens.output, tokens.cached, tokens.written)
    tx.execute(
        "INSERT INTO models_usage (at, provider, model, session, turn, input, output, cached, written, cost,"
        " estimated, outcome, assumed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            record.at,
            record.provider,
            record.model,
            record.session,
            record.turn,
            *counts,
            record.cost,
            int(record.estimated),
            record.outcome,
            int(record.assumed),
        ),
    )


def _usage(sums: tuple[int | float, ...]) -> ModelUsage:
    requests, given, output, cached, written, cost, unpriced, assumed, estimated = sums
    tokens = TokenCounts(int(given), int(output), int(cached), int(written))
    known = None if unpriced else float(cost)
    return ModelUsage(int(requests), tokens, known, float(cost), int(assumed), int(estimated))


def _report_once(tx: Transaction, crossed: CrossedLimit) -> bool:
    state = "reached" if crossed.reached else "neared"
    key = (crossed.scope, crossed.limit_name, crossed.period, state)
    if not tx.execute("INSERT OR IGNORE INTO models_mark VALUES (?, ?, ?, ?)", key).rowcount:
        return False
    data: dict[str, Json] = {
        "scope": crossed.scope,
        "limit": crossed.limit_name,
        "period": crossed.period,
        "of": crossed.limit,
        "spent": crossed.spent,
    }
    tx.append(f"models.budget_{state}", data)
    return True


def _check(limits: BudgetLimits | None) -> None:
    if limits is not None and any(not 0 < value < 1e15 for _what, value in limits.named()):
        raise FreeholdError(
            "models.bad-budget",
            "A budget must be a number above zero",
            hint="For no limit leave it out; to use nothing of a provider set enabled = false in freehold.toml",
        )
