"""`[keeper]`: where the recovery page is served."""

from pydantic import Field

from freehold.manifest.sections.base import Section
from freehold.manifest.units import Port


class KeeperSection(Section):
    """The recovery page."""

    host: str = Field(default="127.0.0.1", description="The address of the recovery page.", examples=["::1"])
    port: Port = Field(default=8001, description="The port of the recovery page.")
