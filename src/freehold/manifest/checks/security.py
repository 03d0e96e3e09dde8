"""Checks of `[security]`."""

from collections.abc import Iterator

from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.exceptions import REFUSED, list_exceptional
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, show_key, show_value
from freehold.manifest.shape import find_nearest

_OWN_CHECK = frozenset({"public-metrics"})
"""Reported by E104."""


@check("E901")
def feature_needs_an_exception(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A setting lowers a protection without `[security.exceptions.<feature>]`."""
    for feature in list_exceptional().values():
        exception = manifest.security.exceptions.get(feature.name)
        if feature.name in _OWN_CHECK or (exception and exception.holds_on(facts.today)):
            continue
        for key, value in feature.uses(manifest):
            yield CheckFinding(
                key,
                f"{show_key(key)} is {show_value(value)}: {feature.why}",
                f"Change it, or write [security.exceptions.{feature.name}] with a reason",
            )


@check("W902")
def exception_without_use(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """An exception is granted for something that is not used."""
    for name in manifest.security.exceptions:
        feature = list_exceptional().get(name)
        if feature and not feature.could_use(manifest) and not any(True for _ in feature.uses(manifest)):
            key: KeyPath = ("security", "exceptions", name)
            yield CheckFinding(
                key,
                f"[{show_key(key)}] is granted, and nothing uses it",
                "Remove it: otherwise a later change would be allowed unnoticed",
            )


@check("E903")
def unknown_exception(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """An exception is granted for something that does not exist."""
    for name in manifest.security.exceptions:
        if name not in list_exceptional():
            key: KeyPath = ("security", "exceptions", name)
            if name in REFUSED:
                yield CheckFinding(
                    key, f"There is no exception {show_value(name)}: {REFUSED[name][0]}", REFUSED[name][1]
                )
                continue
            meant = find_nearest(name, [known.replace("-", "_") for known in list_exceptional()])
            near = f"Did you mean {meant.replace('_', '-')}? " if meant else ""
            yield CheckFinding(
                key,
                f"There is no feature {show_value(name)}",
                f"{near}The features are {', '.join(list_exceptional())}",
            )


@check("W904")
def exception_has_ended(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """An exception was granted until a day that is past."""
    for name, exception in manifest.security.exceptions.items():
        if not exception.holds_on(facts.today):
            key: KeyPath = ("security", "exceptions", name, "until")
            yield CheckFinding(
                key,
                f"{show_key(key)} is {exception.until}, and that day is past",
                "Remove the exception, or set a new date",
            )


@check("E905")
def exception_without_reason(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """An exception is granted without a reason."""
    for name, exception in manifest.security.exceptions.items():
        if not exception.reason.strip():
            key: KeyPath = ("security", "exceptions", name)
            yield CheckFinding(
                key,
                f"[{show_key(key)}] has no reason",
                'reason = "why this is right here", for people who read it later',
            )
