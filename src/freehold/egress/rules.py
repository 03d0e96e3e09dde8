"""The owner's own rules, beside those of the manifest: kept in the timeline's file, each change with its event."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from freehold.egress.policy import Pattern, Rule, Scope, parse_pattern
from freehold.errors import FreeholdError
from freehold.timeline import Timeline, Tx

SCHEMA = (
    """
    CREATE TABLE egress_rule (
      pattern TEXT NOT NULL, verdict TEXT NOT NULL CHECK (verdict IN ('allow', 'deny')),
      scope TEXT NOT NULL CHECK (scope IN ('always', 'session', 'once')), who TEXT NOT NULL,
      PRIMARY KEY (pattern, scope)
    ) STRICT;
    CREATE TABLE egress_question (
      id INTEGER PRIMARY KEY AUTOINCREMENT, pattern TEXT NOT NULL UNIQUE, family TEXT NOT NULL, who TEXT NOT NULL,
      first_seen TEXT NOT NULL, last_seen TEXT NOT NULL, count INTEGER NOT NULL
    ) STRICT;
    """,
)


def ensure_tables(timeline: Timeline) -> None:
    timeline.ensure_schema("egress", *SCHEMA)


@dataclass(frozen=True)
class Rules:
    """Blocking calls on the rules that the owner made while Freehold ran. Adding and removing are idempotent."""

    timeline: Timeline

    def all(self) -> list[Rule]:
        rows = self.timeline.query("SELECT verdict, pattern, scope FROM egress_rule ORDER BY scope, pattern")
        return [
            Rule(cast(Literal["allow", "deny"], verdict), parse_pattern(pattern), cast(Scope, scope))
            for verdict, pattern, scope in rows
        ]

    def add(
        self, verdict: Literal["allow", "deny"], pattern: Pattern, *, scope: Scope = "always", who: str = "owner"
    ) -> None:
        with self.timeline.transaction() as tx:
            put_rule(tx, verdict, pattern, scope, who, "the owner said so")

    def forget(self, pattern: Pattern, *, who: str = "owner") -> list[str]:
        """Removes every rule with exactly this pattern; returns them as text. Raises `egress.no-rule` when there is none."""
        with self.timeline.transaction() as tx:
            rows = tx.execute(
                "DELETE FROM egress_rule WHERE pattern = ? RETURNING verdict, scope", (str(pattern),)
            ).fetchall()
            for verdict, scope in rows:
                data = {"verdict": verdict, "rule": str(pattern), "scope": scope, "reason": "the owner said so"}
                tx.append("egress.rule_removed", data, who=who)
        if not rows:
            raise FreeholdError(
                "egress.no-rule",
                f"No rule of yours is about {pattern}",
                hint="freehold egress lists them; rules of the manifest are changed in freehold.toml",
            )
        return [f"{verdict} {pattern}" for verdict, _scope in rows]

    def end_session(self) -> None:
        """Forgets what was allowed for a session only."""
        with self.timeline.transaction() as tx:
            rows = tx.execute("DELETE FROM egress_rule WHERE scope = 'session' RETURNING verdict, pattern").fetchall()
            for verdict, pattern in rows:
                data = {"verdict": verdict, "rule": pattern, "scope": "session", "reason": "the session ended"}
                tx.append("egress.rule_removed", data)

    def take_once(self, patterns: Sequence[Pattern]) -> Pattern | None:
        """Uses up one permission for a single connection, if there is one for any of these patterns."""
        with self.timeline.transaction() as tx:
            for pattern in patterns:
                gone = tx.execute("DELETE FROM egress_rule WHERE scope = 'once' AND pattern = ?", (str(pattern),))
                if gone.rowcount:
                    data = {"verdict": "allow", "rule": str(pattern), "scope": "once", "reason": "it was used"}
                    tx.append("egress.rule_removed", data)
                    return pattern
        return None


def put_rule(tx: Tx, verdict: Literal["allow", "deny"], pattern: Pattern, scope: Scope, who: str, reason: str) -> None:
    """The newest word about a pattern replaces the older ones, or a `deny` of last month would outlive today's `allow`.

    Questions that the rule answers wait no longer.
    """
    tx.execute(
        "DELETE FROM egress_rule WHERE pattern = ? AND (verdict != ? OR scope = ?)", (str(pattern), verdict, scope)
    )
    tx.execute("INSERT INTO egress_rule VALUES (?, ?, ?, ?)", (str(pattern), verdict, scope, who))
    tx.append(
        "egress.rule_added", {"verdict": verdict, "rule": str(pattern), "scope": scope, "reason": reason}, who=who
    )
    rule = Rule(verdict, pattern, scope)
    for number, text in tx.execute("SELECT id, pattern FROM egress_question").fetchall():
        if scope != "once" and rule.covers(parse_pattern(text)):
            tx.execute("DELETE FROM egress_question WHERE id = ?", (number,))
            data = {"id": number, "target": text, "answer": f"by the rule '{rule}'"}
            tx.append("egress.question_answered", data, who=who)
