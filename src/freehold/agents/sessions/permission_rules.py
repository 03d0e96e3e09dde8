"""Permission rules: what agents may do without asking, and what they may never do."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from posixpath import normpath
from typing import Any, Literal

from freehold.agents.sessions.tool_call import KINDS
from freehold.errors import FreeholdError

Effect = Literal["allow", "ask", "deny"]

MAX_RULES = 1_000
MAX_PATTERN = 10_000
_SHELL_WORDS = r"[^;&|<>$`\n\r(){}]*"
"""What `*` matches in a command: no character that could start another command."""

_NAMED_KINDS = ("execute", "host")
"""Allowed only by a rule for this kind."""


@dataclass(frozen=True)
class PermissionRule:
    """A rule for one kind of tool (`*`: every kind) and a command or path. With a `session` it ends with that session.

    `*` allows neither commands nor host tools: what starts with a path may be a command that does anything.
    """

    effect: Effect
    kind: str
    pattern: str
    exact: bool = False
    session: str | None = None
    id: int = 0

    def matches(self, kind: str, subject: str) -> bool:
        if self.kind not in ("*", kind) or (self.kind == "*" and self.effect == "allow" and kind in _NAMED_KINDS):
            return False
        if self.exact:
            return self.pattern == subject
        if self.effect == "deny":
            return _glob(self.pattern, "(?s:.*)").fullmatch(subject) is not None
        if kind == "execute":
            return _glob(self.pattern, _SHELL_WORDS).fullmatch(subject) is not None
        # A path such as /workspace/../etc names another place than it seems to.
        is_normal = not subject.startswith("/") or normpath(subject) == subject
        return is_normal and _glob(self.pattern, r"[^\0\n]*").fullmatch(subject) is not None

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "effect": self.effect,
            "kind": self.kind,
            "pattern": self.pattern,
            "exact": self.exact,
            "session": self.session,
        }


def decide(
    rules: Sequence[PermissionRule],
    kind: str,
    subjects: tuple[str, ...],
    *,
    exact_only: Collection[str] = (),
    aliases: tuple[str, ...] = (),
) -> Effect:
    """Deny wins over ask, and ask over allow. Denied when any subject is; allowed only when every subject is.

    Of `exact_only` a rule must be exact to allow it. Rules that deny or ask also look at `aliases`. What no rule
    matches is asked.
    """
    names = tuple(dict.fromkeys((*subjects, *aliases)))
    if any(rule.effect == "deny" and rule.matches(kind, each) for rule in rules for each in names or ("",)):
        return "deny"
    if any(rule.effect == "ask" and rule.matches(kind, each) for rule in rules for each in names):
        return "ask"
    allowing = [rule for rule in rules if rule.effect == "allow"]

    def is_allowed(subject: str) -> bool:
        return any(rule.matches(kind, subject) for rule in allowing if rule.exact or subject not in exact_only)

    return "allow" if subjects and all(map(is_allowed, subjects)) else "ask"


def check_rule(rule: PermissionRule) -> None:
    """Raises `policy.unknown-kind`, `policy.allow-all` or `policy.too-large`."""
    if rule.kind != "*" and rule.kind not in KINDS | {"host"}:
        known = ", ".join(sorted(KINDS | {"host"}))
        raise FreeholdError("policy.unknown-kind", f"There is no kind of tool {rule.kind!a:.60}", hint=f"* or {known}")
    if rule.effect == "allow" and not rule.exact and not rule.pattern.strip("* "):
        raise FreeholdError(
            "policy.allow-all",
            f"The pattern {rule.pattern!a:.60} would allow everything",
            hint="Say what is allowed, such as 'git status*' for execute or '/workspace/*' for edit",
        )
    if len(rule.pattern) > MAX_PATTERN:
        raise FreeholdError("policy.too-large", f"A pattern can have at most {MAX_PATTERN} characters")


def _glob(pattern: str, star: str) -> re.Pattern[str]:
    return re.compile(star.join(re.escape(part) for part in pattern.split("*")))
