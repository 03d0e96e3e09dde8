"""Permission rules in SQLite, on the host and out of the agents' reach."""

from freehold.agents.sessions.event_log import current_instant
from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.agents.sessions.permission_rules import MAX_RULES, Effect, PermissionRule, check_rule, decide
from freehold.errors import FreeholdError
from freehold.timeline import Timeline, Transaction


class PermissionRuleStore:
    """Every method blocks: call it with `run_blocking` from a coroutine."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def all(self) -> list[PermissionRule]:
        rows = self._timeline.query("SELECT effect, kind, pattern, exact, session, id FROM agents_rule ORDER BY id")
        return [
            PermissionRule(effect, kind, pattern, bool(exact), session, id)
            for effect, kind, pattern, exact, session, id in rows
        ]

    def decide(self, session: str, request: PermissionRequest) -> Effect:
        """What the rules for every session and those of this session say."""
        rules = [rule for rule in self.all() if rule.session in (None, session)]
        return decide(rules, request.kind, request.subjects, exact_only=request.exact_only, aliases=request.aliases)

    def replace(self, rules: list[PermissionRule], *, who: str) -> list[PermissionRule]:
        """Replaces all rules that hold for every session. Rules of single sessions stay."""
        for rule in rules:
            check_rule(rule)
        if len(rules) > MAX_RULES:
            raise FreeholdError(
                "policy.too-many", f"There can be at most {MAX_RULES} rules", hint="Use patterns with *"
            )
        with self._timeline.transaction() as tx:
            tx.execute("DELETE FROM agents_rule WHERE session IS NULL")
            for rule in rules:
                add_rule(tx, rule, who=who)
            tx.append("policy.replaced", {"rules": len(rules)}, who=who)
        return self.all()


def add_rule(tx: Transaction, rule: PermissionRule, *, who: str) -> None:
    """Inside a transaction of the caller. Idempotent."""
    tx.execute(
        "INSERT OR IGNORE INTO agents_rule (effect, kind, pattern, exact, session, at) VALUES (?, ?, ?, ?, ?, ?)",
        (rule.effect, rule.kind, rule.pattern, rule.exact, rule.session, current_instant()),
    )
    recorded = {"effect": rule.effect, "kind": rule.kind, "pattern": rule.pattern[:2000], "session": rule.session}
    tx.append("policy.added", recorded, who=who)
