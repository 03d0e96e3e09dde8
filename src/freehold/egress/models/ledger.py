"""What was used, what may be, and whether anything may at all: kept in the timeline's file, with its events."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from freehold.egress.models.budget import ALL, WHATS, Crossed, Limits, Spent, What, period_of
from freehold.egress.models.usage import Tokens, Usage
from freehold.errors import FreeholdError
from freehold.timeline import Json, Timeline, Tx

By = Literal["day", "day_model", "model", "session", "turn", "provider"]

SCHEMA = (
    """
    CREATE TABLE models_usage (
      id INTEGER PRIMARY KEY, at TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL, session TEXT NOT NULL,
      turn TEXT, input INTEGER NOT NULL, output INTEGER NOT NULL, cached INTEGER NOT NULL, written INTEGER NOT NULL,
      cost REAL, estimated INTEGER NOT NULL, outcome TEXT NOT NULL
    ) STRICT;
    CREATE INDEX models_usage_at ON models_usage (at);
    CREATE INDEX models_usage_session ON models_usage (session, turn);
    CREATE TABLE models_budget (
      scope TEXT PRIMARY KEY, day_cost REAL, month_cost REAL, day_tokens INTEGER, month_tokens INTEGER
    ) STRICT;
    CREATE TABLE models_mark (
      scope TEXT NOT NULL, what TEXT NOT NULL, period TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('neared', 'reached', 'lifted')),
      PRIMARY KEY (scope, what, period, state)
    ) STRICT;
    CREATE TABLE models_stop (
      one INTEGER PRIMARY KEY CHECK (one = 1), at TEXT NOT NULL, who TEXT NOT NULL, why TEXT NOT NULL
    ) STRICT;
    """,
    # A line may stand for several questions (`folding`).
    "ALTER TABLE models_usage ADD COLUMN requests INTEGER NOT NULL DEFAULT 1",
)
CHANGES = ("models.stopped", "models.resumed", "models.budget_changed", "models.budget_lifted")
"""The events after which what is in force must be read again."""

_GROUPS: Mapping[By, tuple[str, ...]] = {
    "day": ("substr(at, 1, 10)",),
    "day_model": ("substr(at, 1, 10)", "provider", "model"),
    "model": ("provider", "model"),
    "provider": ("provider",),
    "session": ("session",),
    "turn": ("session", "turn"),
}
_SUMS = (
    "coalesce(sum(requests), 0), coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cached), 0), "
    "coalesce(sum(written), 0), coalesce(sum(cost), 0), coalesce(sum((cost IS NULL) * requests), 0)"
)


def now_text() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Spell:
    """One request to a provider, as it is written down."""

    provider: str
    model: str
    session: str
    turn: str | None
    tokens: Tokens
    cost: float | None
    estimated: bool
    outcome: str
    at: str = field(default_factory=now_text)


@dataclass(frozen=True)
class Stopped:
    """Since when nothing may speak to a model, by whose word and why."""

    at: str
    who: str
    why: str


@dataclass(frozen=True)
class Row:
    """A line of a report: what it is about, by the words of its grouping, and what it cost."""

    key: tuple[str | None, ...]
    usage: Usage


def ensure_tables(timeline: Timeline) -> None:
    timeline.ensure_schema("models", *SCHEMA)


@dataclass(frozen=True)
class Ledger:
    """Blocking calls. The tables must exist (`ensure_tables`)."""

    timeline: Timeline

    def open(self, spell: Spell) -> int:
        """Notes a request that is under way with what it may cost, so that it is counted even if nobody sees its end."""
        with self.timeline.transaction() as tx:
            return _insert(tx, spell)

    def close(self, number: int | None, spell: Spell, milliseconds: int, crossed: list[Crossed]) -> list[Crossed]:
        """What it really cost, with its event; those of `crossed` that nobody was told of before.

        `number` is what `open` gave, or None for one that was over too soon to be opened.
        """
        tokens = spell.tokens
        with self.timeline.transaction() as tx:
            if number is not None:
                tx.execute("DELETE FROM models_usage WHERE id = ?", (number,))
            _insert(tx, spell, number)
            data: dict[str, Json] = {
                "provider": spell.provider,
                "model": spell.model,
                "session": spell.session,
                "turn": spell.turn,
                "input": tokens.input,
                "output": tokens.output,
                "cached": tokens.cached,
                "cost": spell.cost,
                "estimated": spell.estimated,
                "outcome": spell.outcome,
                "milliseconds": milliseconds,
            }
            tx.append("models.answered", data, who=f"session:{spell.session}"[:256])
            return [each for each in crossed if _tell(tx, each)]

    def note_reached(self, crossed: Crossed) -> None:
        """A question was refused for it; told once a day or month."""
        with self.timeline.transaction() as tx:
            _tell(tx, crossed)

    def reached(self) -> set[tuple[str, What, str]]:
        """Limits by scope, name and period for which something was refused or cut."""
        return self._marked("reached")

    def close_lost(self) -> int:
        """Those that a gateway left open when it was killed; they stay counted with what was set aside."""
        with self.timeline.transaction() as tx:
            lost = tx.execute("UPDATE models_usage SET outcome = 'lost' WHERE outcome = 'open'").rowcount
            if lost:
                tx.append("models.requests_lost", {"count": lost})
            return lost

    def spent(self, now: datetime) -> dict[tuple[str, str], Spent]:
        """By scope and period, for the day and the month that it is."""
        found: dict[tuple[str, str], Spent] = {}
        for what in ("day_cost", "month_cost"):
            period = period_of(what, now)
            rows = self.timeline.query(
                "SELECT provider, sum(input + output), coalesce(sum(cost), 0), sum((cost IS NULL) * requests)"
                " FROM models_usage"
                " WHERE at >= ? AND at < ? GROUP BY provider",
                (period, period + "~"),
            )
            whole = Spent()
            for provider, tokens, cost, unpriced in rows:
                found[provider, period] = Spent(tokens, cost, unpriced)
                whole = Spent(whole.tokens + tokens, whole.cost + cost, whole.unpriced + unpriced)
            found[ALL, period] = whole
        return found

    def usage(self, session: str, turn: str | None = None) -> Usage:
        """Of a session, or of one turn of it."""
        where, values = ("session = ?", [session]) if turn is None else ("session = ? AND turn = ?", [session, turn])
        sql = f"SELECT {_SUMS} FROM models_usage WHERE {where}"  # noqa: S608 - our own words only
        return _usage(self.timeline.query(sql, values)[0])

    def report(self, by: By, *, since: str = "", limit: int = 1000) -> list[Row]:
        """The newest first; `since` is a day such as 2026-11-01."""
        group = ", ".join(_GROUPS[by])
        sql = (
            f"SELECT {group}, {_SUMS} FROM models_usage WHERE at >= ? GROUP BY {group} "  # noqa: S608 - likewise
            "ORDER BY max(id) DESC LIMIT ?"
        )
        width = len(_GROUPS[by])
        return [Row(row[:width], _usage(row[width:])) for row in self.timeline.query(sql, (since, limit))]

    def budgets(self) -> dict[str, Limits]:
        """Those that the owner set while Freehold ran; they stand in place of the manifest's."""
        columns = ", ".join(WHATS)
        rows = self.timeline.query(f"SELECT scope, {columns} FROM models_budget")  # noqa: S608 - likewise
        return {scope: Limits(*values) for scope, *values in rows}

    def set_budget(self, scope: str, limits: Limits | None, *, who: str = "owner") -> None:
        """None gives the word back to the manifest. Idempotent."""
        _check(limits)
        with self.timeline.transaction() as tx:
            tx.execute("DELETE FROM models_budget WHERE scope = ?", (scope,))
            data: dict[str, Json] = {"scope": scope}
            if limits is not None:
                values = [getattr(limits, what) for what in WHATS]
                tx.execute("INSERT INTO models_budget VALUES (?, ?, ?, ?, ?)", (scope, *values))
                data |= dict(limits.named())
            # What was said about the old limits is said again about the new.
            tx.execute("DELETE FROM models_mark WHERE scope = ? AND state != 'lifted'", (scope,))
            tx.append("models.budget_changed", data, who=who)

    def lift(self, scope: str, what: What, now: datetime, *, who: str = "owner") -> None:
        """For the rest of the day or month. Idempotent."""
        period = period_of(what, now)
        with self.timeline.transaction() as tx:
            tx.execute("INSERT OR IGNORE INTO models_mark VALUES (?, ?, ?, 'lifted')", (scope, what, period))
            tx.append("models.budget_lifted", {"scope": scope, "limit": what, "period": period}, who=who)

    def lifted(self) -> set[tuple[str, What, str]]:
        return self._marked("lifted")

    def _marked(self, state: str) -> set[tuple[str, What, str]]:
        rows = self.timeline.query("SELECT scope, what, period FROM models_mark WHERE state = ?", (state,))
        return {(scope, what, period) for scope, what, period in rows}

    def stop(self, *, who: str = "owner", why: str = "") -> None:
        """Nothing may speak to a model until `resume`. Idempotent."""
        with self.timeline.transaction() as tx:
            tx.execute("INSERT OR IGNORE INTO models_stop VALUES (1, ?, ?, ?)", (now_text(), who, why))
            tx.append("models.stopped", {"why": why}, who=who)

    def resume(self, *, who: str = "owner") -> None:
        """Idempotent."""
        with self.timeline.transaction() as tx:
            if tx.execute("DELETE FROM models_stop").rowcount:
                tx.append("models.resumed", who=who)

    def stopped(self) -> Stopped | None:
        rows = self.timeline.query("SELECT at, who, why FROM models_stop")
        return Stopped(*rows[0]) if rows else None


def _insert(tx: Tx, spell: Spell, number: int | None = None) -> int:
    tokens = spell.tokens
    counts = (tokens.input, tokens.output, tokens.cached, tokens.written)
    made = tx.execute(
        "INSERT INTO models_usage (id, at, provider, model, session, turn, input, output, cached, written, cost,"
        " estimated, outcome) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            number,
            spell.at,
            spell.provider,
            spell.model,
            spell.session,
            spell.turn,
            *counts,
            spell.cost,
            int(spell.estimated),
            spell.outcome,
        ),
    )
    return int(made.lastrowid or 0)


def _usage(sums: tuple[int | float, ...]) -> Usage:
    requests, given, output, cached, written, cost, unpriced = sums
    tokens = Tokens(int(given), int(output), int(cached), int(written))
    return Usage(int(requests), tokens, None if unpriced else float(cost), float(cost))


def _tell(tx: Tx, crossed: Crossed) -> bool:
    state = "reached" if crossed.reached else "neared"
    key = (crossed.scope, crossed.what, crossed.period, state)
    if not tx.execute("INSERT OR IGNORE INTO models_mark VALUES (?, ?, ?, ?)", key).rowcount:
        return False
    data: dict[str, Json] = {
        "scope": crossed.scope,
        "limit": crossed.what,
        "period": crossed.period,
        "of": crossed.limit,
        "spent": crossed.spent,
    }
    tx.append(f"models.budget_{state}", data)
    return True


def _check(limits: Limits | None) -> None:
    if limits is not None and any(not 0 < value < 1e15 for _what, value in limits.named()):
        raise FreeholdError(
            "models.bad-budget",
            "A budget is a number above zero",
            hint="For no bound leave it out; to use nothing of a provider set enabled = false in freehold.toml",
        )
