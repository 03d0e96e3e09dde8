"""`[observe]`: logs, metrics and traces."""

from typing import Literal

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Port

LOG_LEVELS = ("debug", "info", "warning", "error")


class ObserveSection(Section):
    """Logs, metrics and traces."""

    metrics_host: str = Field(default="127.0.0.1", description="The address Prometheus metrics are served on.")
    metrics_port: Port = Field(default=9091, description="The port Prometheus metrics are served on.")
    otlp_endpoint: str | None = Field(
        default=None,
        description="Where OpenTelemetry traces are sent, over HTTP; no traces without it.",
        examples=["http://127.0.0.1:4318"],
    )
    log_level: str = Field(
        default="info", description="The lowest severity that is logged: debug, info, warning or error."
    )
    log_format: Literal["auto", "json", "people"] = Field(
        default="auto", description="JSON, plain lines, or `auto`: plain lines on a terminal and JSON elsewhere."
    )
