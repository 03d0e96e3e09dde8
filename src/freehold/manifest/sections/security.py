"""`[security]`: protections that the owner has lowered on purpose."""

import datetime
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field

from freehold.manifest.sections.base import Section


def _day(value: object) -> object:
    return datetime.date.fromisoformat(value) if isinstance(value, str) else value


class SecurityExceptionSection(Section):
    """A protection that the owner lowers on purpose."""

    reason: str = Field(default="", description="Why this is right here.", examples=["the scraper runs on 10.0.0.5"])
    until: Annotated[datetime.date | None, BeforeValidator(_day)] = Field(
        default=None, description="The last day on which it holds.", examples=["2027-06-30"]
    )

    def holds_on(self, day: datetime.date) -> bool:
        """Whether it was not granted only until some earlier day."""
        return self.until is None or day <= self.until


class SecuritySection(Section):
    """Protections that the owner has lowered on purpose."""

    exceptions: Mapping[str, SecurityExceptionSection] = Field(default={}, description="Exceptions, by name.")
