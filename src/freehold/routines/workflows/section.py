"""`[workflows]`: the bounds of workflows."""

from collections.abc import Mapping

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Seconds


class WorkflowsSection(Section):
    """Python files with durable steps."""

    budget: float | None = Field(
        default=None,
        gt=0,
        lt=1_000_000,
        description="US dollars that the agents of one workflow may cost, unless it was begun with another budget. It is ended at it.",
        examples=[5.0],
    )
    longest: Seconds = Field(
        default=3600, ge=1, le=7 * 86400, description="How long the file may work without coming to the next step."
    )
    at_once: int = Field(
        default=4, ge=1, le=64, description="How many files may work at the same time. Those that wait do not count."
    )
    steps: int = Field(default=1000, ge=1, le=100_000, description="How many steps one workflow may have.")
    postgres: Mapping[str, str] = Field(
        default={},
        description="A PostgreSQL database that keeps the workflows and their steps, instead of the file of the timeline: "
        "url, and password as `secret:name` or `env:NAME`; schema, sslmode and sslrootcert if they are not the usual ones.",
        examples=[{"url": "postgresql://freehold@db.example.com/freehold", "password": "secret:postgres"}],
    )
