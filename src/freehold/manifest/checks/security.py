"""Walls that the owner knowingly lowers."""

from collections.abc import Iterator

from freehold.manifest.facts import Facts
from freehold.manifest.features import EXCEPTIONAL
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, dotted, show
from freehold.manifest.rules import Finding, rule
from freehold.manifest.shape import nearest

_OWN_RULE = frozenset({"public-metrics"})
"""Told by a rule of its own (E104)."""


@rule("E901")
def feature_needs_an_exception(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """Something lowers a wall without `[security.exceptions.<feature>]`."""
    for feature in EXCEPTIONAL.values():
        exception = manifest.security.exceptions.get(feature.name)
        if feature.name in _OWN_RULE or (exception and exception.holds_on(facts.today)):
            continue
        for key, value in feature.uses(manifest):
            yield Finding(
                key,
                f"{dotted(key)} is {show(value)}: {feature.why}",
                f"Change it, or write [security.exceptions.{feature.name}] with a reason",
            )


@rule("W902")
def exception_without_use(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """An exception is granted for something that is not used."""
    for name in manifest.security.exceptions:
        feature = EXCEPTIONAL.get(name)
        if feature and not any(True for _ in feature.uses(manifest)):
            key: KeyPath = ("security", "exceptions", name)
            yield Finding(
                key,
                f"[{dotted(key)}] is granted, and nothing uses it",
                "Take it out: it would allow later what nobody remembers",
            )


@rule("E903")
def unknown_exception(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """An exception is granted for something that does not exist."""
    for name in manifest.security.exceptions:
        if name not in EXCEPTIONAL:
            key: KeyPath = ("security", "exceptions", name)
            meant = nearest(name, [known.replace("-", "_") for known in EXCEPTIONAL])
            near = f"Did you mean {meant.replace('_', '-')}? " if meant else ""
            yield Finding(key, f"There is no feature {show(name)}", f"{near}The features are {', '.join(EXCEPTIONAL)}")


@rule("W904")
def exception_has_ended(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """An exception was granted until a day that is past."""
    for name, exception in manifest.security.exceptions.items():
        if not exception.holds_on(facts.today):
            key: KeyPath = ("security", "exceptions", name, "until")
            yield Finding(
                key,
                f"{dotted(key)} is {exception.until}, and that day is past",
                "Take the exception out, or grant it anew",
            )


@rule("E905")
def exception_without_reason(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """An exception is granted without a reason."""
    for name, exception in manifest.security.exceptions.items():
        if not exception.reason.strip():
            key: KeyPath = ("security", "exceptions", name)
            yield Finding(
                key, f"[{dotted(key)}] has no reason", 'reason = "why this is right here", for whoever reads it later'
            )
