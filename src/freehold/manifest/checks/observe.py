"""Checks of `[observe]`."""

from collections.abc import Iterator

from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import show_value
from freehold.manifest.sections.observe import LOG_LEVELS
from freehold.manifest.shape import find_nearest


@check("E801")
def unknown_log_level(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The log level is not one that exists."""
    level = manifest.observe.log_level
    if level not in LOG_LEVELS:
        meant = find_nearest(level, LOG_LEVELS) or "info"
        yield CheckFinding(
            ("observe", "log_level"),
            f"observe.log_level is {show_value(level)}",
            f"One of {', '.join(LOG_LEVELS)}: log_level = {show_value(meant)}",
        )
