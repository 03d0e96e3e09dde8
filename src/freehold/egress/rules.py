"""The owner's rules, beside those of the manifest. They are stored in the timeline's file, with an event a change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from freehold.egress.policy import EgressRule, HostPattern, Reach, parse_pattern
from freehold.errors import FreeholdError
from freehold.timeline import Json, Timeline, Transaction

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
    # The scope 'session' of 0.1.0 meant "until Freehold restarts". `session` is '' for what belongs to no session.
    """
    CREATE TABLE egress_rule_2 (
      pattern TEXT NOT NULL, verdict TEXT NOT NULL CHECK (verdict IN ('allow', 'deny')),
      reach TEXT NOT NULL CHECK (reach IN ('always', 'until_restart', 'conversation', 'once')),
      session TEXT NOT NULL, who TEXT NOT NULL, PRIMARY KEY (pattern, reach, session)
    ) STRICT;
    INSERT INTO egress_rule_2 SELECT pattern, verdict, replace(scope, 'session', 'until_restart'), '', who
      FROM egress_rule;
    DROP TABLE egress_rule;
    ALTER TABLE egress_rule_2 RENAME TO egress_rule;
    CREATE TABLE egress_request (
      id INTEGER PRIMARY KEY AUTOINCREMENT, pattern TEXT NOT NULL, session TEXT NOT NULL, family TEXT NOT NULL,
      who TEXT NOT NULL, first_seen TEXT NOT NULL, last_seen TEXT NOT NULL, count INTEGER NOT NULL,
      UNIQUE (pattern, session)
    ) STRICT;
    INSERT INTO egress_request SELECT id, pattern, '', family, who, first_seen, last_seen, count FROM egress_question;
    DELETE FROM sqlite_sequence WHERE name = 'egress_request';
    INSERT INTO sqlite_sequence (name, seq)
      SELECT 'egress_request', seq FROM sqlite_sequence WHERE name = 'egress_question';
    DROP TABLE egress_question;
    """,
)


def ensure_tables(timeline: Timeline) -> None:
    timeline.ensure_schema("egress", *SCHEMA)


@dataclass(frozen=True)
class EgressRules:
    """Blocking calls on the rules that the owner made while Freehold ran. Adding and removing are idempotent."""

    timeline: Timeline

    def all(self) -> list[EgressRule]:
        rows = self.timeline.query(
            "SELECT verdict, pattern, reach, session FROM egress_rule ORDER BY reach, pattern, session"
        )
        return [
            EgressRule(
                cast(Literal["allow", "deny"], verdict), parse_pattern(pattern), cast(Reach, reach), session or None
            )
            for verdict, pattern, reach, session in rows
        ]

    def add(self, rule: EgressRule, *, who: str = "owner") -> None:
        with self.timeline.transaction() as tx:
            insert_rule(tx, rule, who, "added by the owner")

    def remove(self, pattern: HostPattern, *, who: str = "owner") -> list[str]:
        """Removes every rule with exactly this pattern and returns them as text. Raises `egress.no-rule` without one."""
        with self.timeline.transaction() as tx:
            removed = _delete_rules(tx, "pattern = ?", (str(pattern),), "removed by the owner", who)
        if not removed:
            raise FreeholdError(
                "egress.no-rule",
                f"You have no rule for {pattern}",
                hint="freehold egress lists your rules; rules of the manifest are changed in freehold.toml",
            )
        return removed

    def end_restart(self) -> None:
        """Removes what was allowed until a restart or for a conversation. Called when egress starts."""
        with self.timeline.transaction() as tx:
            _delete_rules(tx, "reach IN ('until_restart', 'conversation')", (), "Freehold restarted")

    def end_conversation(self, session: str) -> None:
        """Removes what was allowed for the conversation of one session."""
        with self.timeline.transaction() as tx:
            _delete_rules(tx, "reach = 'conversation' AND session = ?", (session,), "the conversation ended")

    def forget_session(self, session: str) -> None:
        """Removes every rule and network request of a session that was deleted."""
        with self.timeline.transaction() as tx:
            _delete_rules(tx, "session = ?", (session,), "the session was deleted")
            for number, pattern in tx.execute(
                "DELETE FROM egress_request WHERE session = ? RETURNING id, pattern", (session,)
            ).fetchall():
                data = {"id": number, "target": pattern, "answer": "the session was deleted"}
                tx.append("egress.question_answered", data)

    def use_once(self, patterns: Sequence[HostPattern], session: str | None) -> HostPattern | None:
        """Uses up one permission for a single connection of this session, if there is one for any of these patterns."""
        with self.timeline.transaction() as tx:
            for pattern in patterns:
                where = "reach = 'once' AND pattern = ? AND session = ?"
                if _delete_rules(tx, where, (str(pattern), session or ""), "it was used"):
                    return pattern
        return None


def insert_rule(tx: Transaction, rule: EgressRule, who: str, reason: str, request: int | None = None) -> None:
    """Adds a rule and removes the network requests that it answers. `request` is the one whose answer made the rule.

    A rule for everyone replaces older rules with the same pattern, or a `deny` of last month would outlive today's
    `allow`. A rule for one session replaces only its own.
    """
    pattern, session = str(rule.pattern), rule.session or ""
    if session:
        tx.execute(
            "DELETE FROM egress_rule WHERE pattern = ? AND reach = ? AND session = ?", (pattern, rule.reach, session)
        )
    else:
        tx.execute(
            "DELETE FROM egress_rule WHERE pattern = ? AND (verdict != ? OR (reach = ? AND session = ''))",
            (pattern, rule.verdict, rule.reach),
        )
    tx.execute("INSERT INTO egress_rule VALUES (?, ?, ?, ?, ?)", (pattern, rule.verdict, rule.reach, session, who))
    data = _rule_event(rule.verdict, pattern, rule.reach, session, reason)
    tx.append("egress.rule_added", data if request is None else {**data, "request": request}, who=who)
    if rule.reach == "once":
        return
    for number, text, asking in tx.execute("SELECT id, pattern, session FROM egress_request").fetchall():
        if rule.applies_to(asking or None) and rule.covers(parse_pattern(text)):
            tx.execute("DELETE FROM egress_request WHERE id = ?", (number,))
            answered: dict[str, Json] = {"id": number, "target": text, "answer": f"by the rule '{rule}'"}
            tx.append("egress.question_answered", answered, who=who)


def _delete_rules(
    tx: Transaction, where: str, values: tuple[str, ...], reason: str, who: str = "freehold"
) -> list[str]:
    sql = f"DELETE FROM egress_rule WHERE {where} RETURNING verdict, pattern, reach, session"  # noqa: S608 - our own words
    rows = tx.execute(sql, values).fetchall()
    for verdict, pattern, reach, session in rows:
        tx.append("egress.rule_removed", _rule_event(verdict, pattern, reach, session, reason), who=who)
    return [f"{verdict} {pattern}" for verdict, pattern, _reach, _session in rows]


def _rule_event(verdict: str, pattern: str, reach: str, session: str, reason: str) -> dict[str, Json]:
    data: dict[str, Json] = {"verdict": verdict, "rule": pattern, "scope": reach, "reason": reason}
    return {**data, "session": session} if session else data
