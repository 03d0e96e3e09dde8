"""What may be done without asking: rules of the owner's, kept on the host and out of the agent's reach."""

import re
from dataclasses import dataclass
from posixpath import normpath
from typing import Any, Literal

from freehold.agents.board import KINDS
from freehold.agents.store import Store, now
from freehold.errors import FreeholdError
from freehold.timeline.timeline import Tx

Effect = Literal["allow", "ask", "deny"]

MAX_RULES = 1_000
MAX_PATTERN = 10_000
_SHELL_WORDS = r"[^;&|<>$`\n\r(){}]*"
"""What a star stands for in a command: never what would start another one."""


@dataclass(frozen=True)
class Rule:
    """For one kind of tool (`*`: each) and what it is used on: a command, a path. `session` None: for ever."""

    effect: Effect
    kind: str
    pattern: str
    exact: bool = False
    session: str | None = None
    id: int = 0

    def matches(self, kind: str, subject: str) -> bool:
        if self.kind not in ("*", kind):
            return False
        if self.exact:
            return self.pattern == subject
        if self.effect == "deny":
            return _glob(self.pattern, "(?s:.*)").fullmatch(subject) is not None
        if kind == "execute":
            return _glob(self.pattern, _SHELL_WORDS).fullmatch(subject) is not None
        # A path that is not spelled straight may lead elsewhere than it seems.
        straight = not subject.startswith("/") or normpath(subject) == subject
        return straight and _glob(self.pattern, r"[^\0\n]*").fullmatch(subject) is not None

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "effect": self.effect,
            "kind": self.kind,
            "pattern": self.pattern,
            "exact": self.exact,
            "session": self.session,
        }


def _glob(pattern: str, star: str) -> re.Pattern[str]:
    return re.compile(star.join(re.escape(part) for part in pattern.split("*")))


class Policy:
    """Deny wins over allow, allow over asking; what no rule names is asked. Never everything at once."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def rules(self) -> list[Rule]:
        rows = self._store.timeline.query(
            "SELECT effect, kind, pattern, exact, session, id FROM agents_rule ORDER BY id"
        )
        return [
            Rule(effect, kind, pattern, bool(exact), session, id) for effect, kind, pattern, exact, session, id in rows
        ]

    def decide(self, session: str, kind: str, subjects: tuple[str, ...]) -> Effect:
        """Allowed only when every subject is; denied when any is."""
        rules = [rule for rule in self.rules() if rule.session in (None, session)]
        denied = any(rule.effect == "deny" and rule.matches(kind, each) for rule in rules for each in subjects or ("",))
        if denied:
            return "deny"
        for effect in ("ask", "allow"):
            fitting = [rule for rule in rules if rule.effect == effect]
            if effect == "ask" and any(rule.matches(kind, each) for rule in fitting for each in subjects):
                return "ask"
            if effect == "allow" and subjects and all(any(r.matches(kind, each) for r in fitting) for each in subjects):
                return "allow"
        return "ask"

    def replace(self, rules: list[Rule], *, who: str) -> list[Rule]:
        """Puts these in the place of all that hold for ever; those of sessions stay."""
        for rule in rules:
            check_rule(rule)
        if len(rules) > MAX_RULES:
            raise FreeholdError("policy.too-many", f"There can be {MAX_RULES} rules", hint="Use patterns with *")
        with self._store.timeline.transaction() as tx:
            tx.execute("DELETE FROM agents_rule WHERE session IS NULL")
            for rule in rules:
                put_rule(tx, rule, who=who)
            tx.append("policy.replaced", {"rules": len(rules)}, who=who)
        return self.rules()


def put_rule(tx: Tx, rule: Rule, *, who: str) -> None:
    """Within a transaction of the caller's. Idempotent."""
    tx.execute(
        "INSERT OR IGNORE INTO agents_rule (effect, kind, pattern, exact, session, at) VALUES (?, ?, ?, ?, ?, ?)",
        (rule.effect, rule.kind, rule.pattern, rule.exact, rule.session, now()),
    )
    told = {"effect": rule.effect, "kind": rule.kind, "pattern": rule.pattern[:2000], "session": rule.session}
    tx.append("policy.added", told, who=who)


def check_rule(rule: Rule) -> None:
    if rule.kind != "*" and rule.kind not in KINDS | {"host"}:
        known = ", ".join(sorted(KINDS | {"host"}))
        raise FreeholdError("policy.unknown-kind", f"There is no kind of tool {rule.kind!a:.60}", hint=f"* or {known}")
    if rule.effect == "allow" and not rule.exact and not rule.pattern.strip("* "):
        raise FreeholdError(
            "policy.allow-all",
            "A rule that allows everything is not taken",
            hint="Name what may be done, such as 'git status*' for execute or '/workspace/*' for edit",
        )
    if len(rule.pattern) > MAX_PATTERN:
        raise FreeholdError("policy.too-large", f"A pattern has at most {MAX_PATTERN} characters")
