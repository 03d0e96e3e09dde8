"""The rules: what is well-formed and still a mistake.

A rule is a small function of the manifest and the facts of the machine. Its docstring is its line in the reference.
Codes are forever: `E…` stops Freehold, `W…` advises, and a code that was given up is never used for anything else.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from freehold.manifest.facts import Facts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, severity_of

RETIRED: frozenset[str] = frozenset()
"""Codes that were once given out and mean nothing any more."""

RESERVED: dict[str, str] = {
    "E001": "The manifest cannot be read.",
    "E002": "The manifest is not UTF-8 text.",
    "E003": "The manifest is not TOML.",
    "E004": "The manifest is too large or nested too deep.",
    "E005": "There is no such key.",
    "E006": "A value has the wrong type.",
    "E007": "An environment variable holds what its key cannot be.",
    "W008": "An environment variable looks as if it were about the manifest, and is not.",
}
"""Codes of reading, which comes before the rules."""


@dataclass(frozen=True)
class Finding:
    """What one rule found at one key."""

    path: KeyPath
    message: str
    hint: str


Check = Callable[[Manifest, Facts], Iterator[Finding]]


@dataclass(frozen=True)
class Rule:
    code: str
    check: Check

    @property
    def summary(self) -> str:
        return (self.check.__doc__ or "").strip().splitlines()[0]


class Registry:
    """Rules by code; a code is given once."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule] = {}

    def rule(self, code: str) -> Callable[[Check], Check]:
        """Registers a function under a code that is new, well-formed and not retired."""
        if len(code) != 4 or code[0] not in "EW" or not code[1:].isdigit():
            raise ValueError(f"{code!r} is no code: an E or a W and three digits")
        taken = {known[1:] for known in (*self._rules, *RESERVED, *RETIRED)}
        if code[1:] in taken:
            raise ValueError(f"the number of {code} is or was another rule's; codes are never reused")

        def register(check: Check) -> Check:
            if not check.__doc__:
                raise ValueError(f"rule {code} has no docstring, and so no line in the reference")
            self._rules[code] = Rule(code, check)
            return check

        return register

    def __iter__(self) -> Iterator[Rule]:
        return iter(sorted(self._rules.values(), key=lambda rule: rule.code[1:]))


RULES = Registry()
rule = RULES.rule


def run_rules(manifest: Manifest, facts: Facts) -> Iterator[tuple[str, Finding]]:
    """Every finding of every rule, with its code."""
    for each in every_rule():
        for finding in each.check(manifest, facts):
            yield each.code, finding


def every_rule() -> tuple[Rule, ...]:
    """All rules. The modules are loaded here, so that whoever only needs the model does not pay for them."""
    from freehold.manifest.rules import agents, computer, door, durable, egress, models, mounts, ports, security

    del agents, computer, door, durable, egress, models, mounts, ports, security
    return tuple(RULES)


__all__ = [
    "RESERVED",
    "RETIRED",
    "RULES",
    "Finding",
    "Registry",
    "Rule",
    "every_rule",
    "rule",
    "run_rules",
    "severity_of",
]
