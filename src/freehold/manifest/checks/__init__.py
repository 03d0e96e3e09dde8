"""Checks that a well-formed manifest must also pass.

A check is a function of the manifest and the facts of the machine. Its docstring is its line in the reference.
Codes are permanent: `E…` stops Freehold, `W…` is a warning, and a retired code is never used again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

from freehold.features import list_features
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, severity_of

RETIRED: frozenset[str] = frozenset({"W731"})
"""Codes that earlier versions used."""

RESERVED: dict[str, str] = {
    "E001": "The manifest cannot be read.",
    "E002": "The manifest is not UTF-8 text.",
    "E003": "The manifest is not TOML.",
    "E004": "The manifest is too large or nested too deep.",
    "E005": "There is no such key.",
    "E006": "A value has the wrong type.",
    "E007": "An environment variable holds what its key cannot be.",
    "W008": "An environment variable looks as if it sets a key of the manifest, but no key has that name.",
    "W009": "A key has another name now. The old name is still read.",
    "E010": "An overlay changes a section that it may not change.",
}
"""Codes of problems that are found before the checks run."""


MODULES = (
    "access",
    "agents",
    "computer",
    "egress",
    "history",
    "models",
    "mounts",
    "observe",
    "ports",
    "retention",
    "security",
    "slots",
)
"""Modules of this folder that register checks."""


@dataclass(frozen=True)
class CheckFinding:
    """What one check found at one key."""

    path: KeyPath
    message: str
    hint: str


CheckFunction = Callable[[Manifest, MachineFacts], Iterator[CheckFinding]]


@dataclass(frozen=True)
class ManifestCheck:
    code: str
    check: CheckFunction

    @property
    def summary(self) -> str:
        return (self.check.__doc__ or "").strip().splitlines()[0]


class CheckRegistry:
    """Checks by code. A code is used once."""

    def __init__(self) -> None:
        self._checks: dict[str, ManifestCheck] = {}

    def register(self, code: str) -> Callable[[CheckFunction], CheckFunction]:
        """Registers a function under a code that is new, well-formed and not retired."""
        if len(code) != 4 or code[0] not in "EW" or not code[1:].isdigit():
            raise ValueError(f"{code!r} is not a code: use E or W and three digits")
        taken = {known[1:] for known in (*self._checks, *RESERVED, *RETIRED)}
        if code[1:] in taken:
            raise ValueError(f"the number of {code} is or was used by another check; codes are never reused")

        def register(check: CheckFunction) -> CheckFunction:
            if not check.__doc__:
                raise ValueError(f"check {code} has no docstring, which is its line in the reference")
            self._checks[code] = ManifestCheck(code, check)
            return check

        return register

    def __iter__(self) -> Iterator[ManifestCheck]:
        return iter(sorted(self._checks.values(), key=lambda each: each.code[1:]))


CHECKS = CheckRegistry()
check = CHECKS.register


def run_checks(manifest: Manifest, facts: MachineFacts) -> Iterator[tuple[str, CheckFinding]]:
    """Every finding of every check, with its code."""
    for each in load_checks():
        for finding in each.check(manifest, facts):
            yield each.code, finding


def load_checks() -> tuple[ManifestCheck, ...]:
    """All checks, those of features included. Their modules are imported here and not before."""
    for module in MODULES:
        import_module(f"{__name__}.{module}")
    for feature in list_features():
        if feature.checks is not None:
            import_module(feature.checks)
    return tuple(CHECKS)


__all__ = [
    "CHECKS",
    "RESERVED",
    "RETIRED",
    "CheckFinding",
    "CheckRegistry",
    "ManifestCheck",
    "check",
    "load_checks",
    "run_checks",
    "severity_of",
]
