"""Checks of `[retention]`."""

from collections.abc import Iterator

from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.sections.retention import MIN_USAGE
from freehold.manifest.units import show_seconds


@check("E811")
def kept_too_short(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Something is kept for a shorter time than Freehold needs."""
    kept = manifest.retention
    if kept.timeline < 0:
        yield CheckFinding(
            ("retention", "timeline"), "retention.timeline is less than nothing", 'Write a duration: timeline = "92d"'
        )
    if kept.usage < MIN_USAGE:
        yield CheckFinding(
            ("retention", "usage"),
            f"retention.usage is {show_seconds(kept.usage)}; budgets of a month need {show_seconds(MIN_USAGE)}",
            f'Write at least: usage = "{show_seconds(MIN_USAGE)}"',
        )
