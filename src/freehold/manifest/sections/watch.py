"""What can be seen, and what was knowingly loosened: `[observe]`, `[security]`."""

import datetime
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Port

LOG_LEVELS = ("debug", "info", "warning", "error")


class Observe(Section):
    """Logs, metrics and traces."""

    metrics_host: str = Field(default="127.0.0.1", description="The address Prometheus metrics are served on.")
    metrics_port: Port = Field(default=9091, description="The port Prometheus metrics are served on.")
    otlp_endpoint: str | None = Field(
        default=None,
        description="Where OpenTelemetry traces are sent, over HTTP; none are made when not said.",
        examples=["http://127.0.0.1:4318"],
    )
    log_level: str = Field(
        default="info", description="The least severity that is logged: debug, info, warning or error."
    )
    log_format: Literal["auto", "json", "people"] = Field(
        default="auto", description="JSON, lines for people, or whichever suits where the log goes."
    )


def _day(value: object) -> object:
    return datetime.date.fromisoformat(value) if isinstance(value, str) else value


class SecurityException(Section):
    """A wall that the owner knowingly lowers."""

    reason: str = Field(
        default="", description="Why, for whoever reads this later.", examples=["the scraper runs on 10.0.0.5"]
    )
    until: Annotated[datetime.date | None, BeforeValidator(_day)] = Field(
        default=None, description="The last day on which it holds.", examples=["2027-06-30"]
    )

    def holds_on(self, day: datetime.date) -> bool:
        """Whether it was not granted only until some earlier day."""
        return self.until is None or day <= self.until


class Security(Section):
    """What was knowingly loosened."""

    exceptions: Mapping[str, SecurityException] = Field(
        default={}, description="Walls the owner knowingly lowers, by feature."
    )
