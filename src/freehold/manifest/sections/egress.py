"""`[egress]`: which hosts the computer may reach."""

from typing import Literal

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Words


class EgressSection(Section):
    """Which hosts the computer may reach."""

    mode: Literal["deny", "ask", "allow"] = Field(
        default="ask", description="What happens to a host that no rule names: refused, asked for, or let through."
    )
    allow: Words = Field(
        default=(),
        description="Hosts that may be reached, with an optional port; `*.` stands for every subdomain. When a host is taken out, its open connections are cut.",
        examples=[["api.test", "*.code.test:443"]],
    )
    deny: Words = Field(
        default=(),
        description="Hosts that may never be reached; wins over allow. Open connections to them are cut.",
        examples=[["*.example.org"]],
    )
