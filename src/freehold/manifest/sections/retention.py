"""`[retention]`: what is kept in detail, and for how long."""

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Seconds

MIN_USAGE = 32 * 86_400
"""Longer than the month of a budget."""


class RetentionSection(Section):
    """What is kept in detail, and for how long. What history keeps is in `[history]`."""

    timeline: Seconds = Field(
        default=92 * 86_400,
        description="Timeline events older than this are moved to compressed files in `timeline-archive`. They can be read and verified as before, and are never deleted.",
        examples=["365d"],
    )
    usage: Seconds = Field(
        default=92 * 86_400,
        description="Model requests older than this are stored as sums by day, provider, model and session, and a longer time does not bring them back. At least 32 days.",
        examples=["365d"],
    )
