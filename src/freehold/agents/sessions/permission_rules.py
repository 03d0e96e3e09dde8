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
_STARTS_COMMAND = re.compile(r"[;&|<>$`\n\r(){}]")
"""What `*` does not stand for in a command: a character that could start another command."""
_ENDS_PATH = re.compile(r"[\0\n]")
"""What `*` does not stand for in a path."""

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
            return _covers(self.pattern, subject)
        if kind == "execute":
            return _covers(self.pattern, subject, _STARTS_COMMAND)
        # A path such as /workspace/../etc names another place than it seems to.
        is_normal = not subject.startswith("/") or normpath(subject) == subject
        return is_normal and _covers(self.pattern, subject, _ENDS_PATH)

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


def _covers(pattern: str, subject: str, without: re.Pattern[str] | None = None) -> bool:
    """Whether the pattern matches. Its `*` stands for any text `without` these characters.

    Takes time in proportion to the subject, which an agent writes: a regular expression with several `*` could take
    hours. The first place of each part is the right one: at a later one the `*` before it stands for more, and the
    next `*` can reach no further.
    """
    if "*" not in pattern:
        return pattern == subject
    first, *middle, last = pattern.split("*")
    at, end = len(first), len(subject) - len(last)
    if at > end or not subject.startswith(first) or not subject.endswith(last):
        return False
    for part in middle:
        found = subject.find(part, at, end)
        if found < 0 or (without is not None and without.search(subject, at, found)):
            return False
        at = found + len(part)
    return without is None or without.search(subject, at, end) is None
